"""Any sequence of tree operations, with restarts in between, agrees with a plain model in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from app.store import Database, Repository
from app.store.values import State
from engine import Segment

text = st.text(max_size=30)


class Node:
    def __init__(self, number: int, parent: Node | None, role: str, content: str) -> None:
        self.number, self.parent, self.role, self.content = number, parent, role, content
        self.children: list[Node] = []
        self.active: Node | None = None
        self.deleted = False
        self.state = State.COMPLETE
        self.segments: tuple[Segment, ...] = ()


class TreeMachine(RuleBasedStateMachine):
    nodes = Bundle("nodes")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "chats.db"
        self.store = Repository(Database(self._path))

    @initialize(target=nodes, content=text)
    def start(self, content: str) -> Node:
        self.chat = self.store.create_conversation().id
        self.root = Node(0, None, "", "")
        return self._added(self.store.add_user_message(self.chat, None, content).id, self.root, "user", content)

    def _added(self, number: int, parent: Node, role: str, content: str) -> Node:
        node = Node(number, parent, role, content)
        parent.children.append(node)
        parent.active = node
        return node

    @rule(target=nodes, parent=nodes, content=text)
    def add_user(self, parent: Node, content: str) -> Node:
        number = self.store.add_user_message(self.chat, parent.number, content).id
        return self._added(number, parent, "user", content)

    @rule(target=nodes, content=text)
    def add_root(self, content: str) -> Node:
        return self._added(self.store.add_user_message(self.chat, None, content).id, self.root, "user", content)

    @rule(
        target=nodes,
        parent=nodes,
        content=text,
        finish=st.booleans(),
        tokens=st.lists(st.integers(0, 9999), max_size=9),
    )
    def add_reply(self, parent: Node, content: str, finish: bool, tokens: list[int]) -> Node:
        number = self.store.begin_reply(self.chat, parent.number, seed=1, request={}, model={}).id
        node = self._added(number, parent, "assistant", content)
        if finish:
            node.segments = (Segment("decode", tuple(tokens)),)
            self.store.finish_reply(number, State.COMPLETE, content, "", segments=node.segments)
        else:
            self.store.flush_reply(number, content, "")
            node.state = State.STREAMING
        return node

    @rule(node=nodes, step=st.sampled_from([-1, 1]))
    def switch(self, node: Node, step: int) -> None:
        chosen = self.store.switch_branch(node.number, step)
        parent = node.parent
        assert parent is not None
        alive = [child for child in parent.children if not child.deleted]
        if node in alive:
            expected = alive[max(0, min(len(alive) - 1, alive.index(node) + step))]
            parent.active = expected
            assert chosen == expected.number

    @rule(node=nodes)
    def delete(self, node: Node) -> None:
        self.store.delete_message(node.number)
        node.deleted = True

    @rule(node=nodes)
    def restore(self, node: Node) -> None:
        self.store.restore_message(node.number)
        node.deleted = False

    @rule()
    def restart(self) -> None:
        # Closed without a word, as a killed process would.
        self.store.db.close()
        self.store = Repository(Database(self._path))
        self._interrupt(self.root)

    def _interrupt(self, node: Node) -> None:
        if node.state is State.STREAMING:
            node.state = State.INTERRUPTED
        for child in node.children:
            self._interrupt(child)

    @invariant()
    def same_as_the_model(self) -> None:
        if not hasattr(self, "root"):
            return
        expected: list[Node] = []
        node = self.root
        while alive := [child for child in node.children if not child.deleted]:
            node = node.active if node.active in alive else alive[-1]
            expected.append(node)
        path = self.store.path(self.chat)
        assert [(m.id, m.role, m.content, m.state) for m in path] == [
            (n.number, n.role, n.content, n.state) for n in expected
        ]
        if expected:
            history = self.store.history(expected[-1].number)
            assert [m.id for m in history] == [n.number for n in expected]
            assert [m.reply.segments if m.reply else () for m in history] == [n.segments for n in expected]

    def teardown(self) -> None:
        assert self.store.db.rows("PRAGMA integrity_check")[0][0] == "ok"
        assert self.store.db.rows("PRAGMA foreign_key_check") == []
        self.store.db.close()
        self._folder.cleanup()


TreeMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestTree = TreeMachine.TestCase
