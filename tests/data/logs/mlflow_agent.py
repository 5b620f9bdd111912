"""A program of its own: an agent traced by MLflow into a fresh store, whose server then runs until stdin ends.

    python mlflow_agent.py FOLDER

Writes FOLDER/mlflow.db and FOLDER/trace.json, and prints the server's port. Apart from the tests' process, because
MLflow keeps its settings for as long as a process lives.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    os.chdir(folder)
    store = f"sqlite:///{folder / 'mlflow.db'}"
    os.environ |= {"_MLFLOW_SERVER_FILE_STORE": store, "_MLFLOW_SERVER_ARTIFACT_ROOT": str(folder / "artifacts")}
    import mlflow  # noqa: PLC0415 (reads the settings above)
    from mlflow.server import app  # noqa: PLC0415
    from werkzeug.serving import make_server  # noqa: PLC0415

    mlflow.set_tracking_uri(store)
    mlflow.set_experiment("agents")

    @mlflow.trace(span_type="TOOL")
    def mail__search(q: str) -> str:
        return f"one mail about {q}"

    @mlflow.trace(span_type="TOOL")
    def mail__send_message(to: str) -> str:
        raise ValueError("429 too many requests")

    @mlflow.trace(span_type="CHAT_MODEL")
    def chat(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        function = {"name": "mail__search", "arguments": '{"q": "x"}'}
        call = {"id": "c1", "type": "function", "function": function}
        return {"choices": [{"message": {"role": "assistant", "content": "I search for x.", "tool_calls": [call]}}]}

    @mlflow.trace(span_type="AGENT")
    def agent(question: str) -> str:
        chat([{"role": "user", "content": question}], [{"type": "function", "function": {"name": "mail__search"}}])
        mail__search("x")
        try:
            return mail__send_message("Ann")
        except ValueError:
            return "failed"

    agent("Find x and send it to Ann")
    mlflow.flush_trace_async_logging()
    id = mlflow.get_last_active_trace_id()
    mlflow.log_feedback(trace_id=id, name="task_success", value=False)
    (folder / "trace.json").write_text(mlflow.get_trace(id).to_json(pretty=True))

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
