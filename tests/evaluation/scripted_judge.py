"""Scripted judge, called directly or over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response

from cluster.errors import LLMError
from evaluation.answers.judge_prompts import PROBE
from serve.llm.chat_form import Message, chat_request, read_reply

KNOWN = {(case.passage, case.statement): case.supported for case in PROBE}


class ScriptedJudge:
    """Judge that decides by words in the prompt.

    Each sentence is a statement. Statements with "true" are supported, and passages with "useful"
    are useful. The first `wrong` probe cases are answered wrongly. `replies` overrides the replies
    to a task, by its schema's first field; the last is repeated, and an int is an HTTP status.
    """

    def __init__(self) -> None:
        self.wrong = 0
        self.asked_back: list[str] = ["same", "near", "other"]
        self.noncommittal = False
        self.replies: dict[str, list[Any]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.wait_s = 0.0
        self.most_at_once = 0
        self._now = 0

    async def respond(self, body: dict[str, Any]) -> Any:
        """Return a chat completion, or an HTTP status."""
        self.bodies.append(body)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(self.wait_s)
        self._now -= 1
        reply = self.reply(body)
        if isinstance(reply, int):
            return reply
        return {"choices": [{"message": {"content": reply}, "finish_reason": "stop"}]}

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """Call the judge as a ChatModel, with requests and replies in their HTTP form."""
        completion = await self.respond(chat_request("judge", messages, **options))
        if isinstance(completion, int):
            raise LLMError(f"llm: answered {completion}")
        return read_reply(completion, constrained=True)

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/v1/chat/completions")
        async def chat(request: Request) -> Response:
            self.keys.append(request.headers.get("authorization", ""))
            completion = await self.respond(await request.json())
            if isinstance(completion, int):
                return Response("no", status_code=completion)
            return Response(json.dumps(completion), media_type="application/json")

        return app

    def reply(self, body: dict[str, Any]) -> Any:
        task = next(iter(body["response_format"]["json_schema"]["schema"]["properties"]))
        user = body["messages"][1]["content"]
        if self.is_probe(user):
            return json.dumps(self.probe_verdict(user))
        if script := self.replies.get(task):
            return script.pop(0) if len(script) > 1 else script[0]
        return json.dumps(self.answer(task, user))

    def answer(self, task: str, user: str) -> dict[str, Any]:
        if task == "statements":
            return {"statements": [s.strip() for s in inside("text", user).split(".") if s.strip()]}
        if task == "verdicts":
            lines = inside("statements", user).splitlines()
            return {"verdicts": [{"reason": "", "supported": "true" in line} for line in lines]}
        if task == "noncommittal":
            return {"noncommittal": self.noncommittal, "questions": self.asked_back}
        return {"reason": "", "useful": "useful" in inside("passage", user)}

    def is_probe(self, user: str) -> bool:
        return any(case.passage in user for case in PROBE)

    def probe_verdict(self, user: str) -> dict[str, Any]:
        case = (unmark(inside("passages", user)), unmark(inside("statements", user)))
        right = KNOWN[case]
        self.wrong -= 1
        verdict = right if self.wrong < 0 else not right
        return {"verdicts": [{"reason": "", "supported": verdict}]}

    def users(self, task: str) -> list[str]:
        """Return the user messages of one task, without the probe."""
        return [
            body["messages"][1]["content"]
            for body in self.bodies
            if task in body["response_format"]["json_schema"]["schema"]["properties"]
            and not self.is_probe(body["messages"][1]["content"])
        ]


def inside(tag: str, user: str) -> str:
    found = re.search(rf"<{tag}>\n(.*)\n</{tag}>", user, re.DOTALL)
    assert found, user
    return found[1]


def unmark(line: str) -> str:
    return line.split(" ", 1)[1]
