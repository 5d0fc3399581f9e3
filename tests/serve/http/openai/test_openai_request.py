from __future__ import annotations

import pytest
from pydantic import ValidationError

from serve.http.openai.openai_request import MAX_MESSAGES, ChatMessage


def test_parts_of_a_message_are_joined_up_to_their_limit() -> None:
    part = {"type": "text", "text": "a"}
    message = ChatMessage.model_validate({"role": "user", "content": [part] * MAX_MESSAGES})
    assert message.content == "\n".join("a" * MAX_MESSAGES)
    with pytest.raises(ValidationError, match=f"has more than {MAX_MESSAGES} parts"):
        ChatMessage.model_validate({"role": "user", "content": [part] * (MAX_MESSAGES + 1)})
