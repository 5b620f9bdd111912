"""Learning: traces -> examples -> retriever, reranker, relevance head -> ONNX bundle, evaluated and tracked.

`TOOLCRIB` marks the package as toolcrib's own: its name is generic, and `toolcrib` checks at start that no other
package of that name shadows it.
"""

TOOLCRIB = True
