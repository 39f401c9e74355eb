"""What an agent says carries whose it is: who looks on may read it late."""  # K6

from windlass.core.plan import Task
from worlds import World, plan_of, writes


def test_chatter_names_its_agent():
    world = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")})
    world.go()
    assert {(each.task, each.role, each.n) for each in world.activity} == {
        ("a", "player", 1),
        ("a", "coach", 1),
    }
