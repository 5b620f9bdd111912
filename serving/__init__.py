"""The decision: bundle + catalog + caller -> menu, verdict, observation. Never imports torch or training.

`TOOLCRIB` marks the package as toolcrib's own: its name is generic, and `toolcrib` checks at start that no other
package of that name shadows it.
"""

TOOLCRIB = True
