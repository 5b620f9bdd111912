"""Learning: traces -> examples -> retriever, reranker, relevance head -> ONNX bundle, evaluated and tracked.

`TOOLCRIB` marks the package as toolcrib's own: its name is generic, and `toolcrib` checks at start that no other
package of that name shadows it.
"""

import os

# Threads that wait by spinning make training many times slower as soon as anything else wants a core. Read by OpenMP
# when torch is first imported, so it has to be said here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TOOLCRIB = True
