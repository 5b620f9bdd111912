"""The ground: what a tool is, what happened when one was used, formats and mining.

`TOOLCRIB` marks the package as toolcrib's own: its name is generic, and `toolcrib` checks at start that no other
package of that name shadows it.
"""

TOOLCRIB = True
