"""A small plan in each format that has its own files, for whole runs."""

TASK = "---\nid: {id}\ntitle: Part {id}\nstatus: backlog\n{more}---\n\n# {id}\n\n- do it\n"

FEATURE = """\
id: FEAT-1
name: Two parts
tasks:
- id: TASK-1
  name: One
  file_path: tasks/backlog/TASK-1.md
  dependencies: []
- id: TASK-2
  name: Two
  file_path: tasks/backlog/TASK-2.md
  dependencies: [TASK-1]
orchestration:
  parallel_groups:
  - [TASK-1]
  - [TASK-2]
"""

SPEC = """\
---
id: SPEC-1
status: draft
---
# SPEC-1: Two parts

## Acceptance Criteria

- it works

### Task Groups

| Group | Wave | Tasks | Dependencies |
|-------|------|-------|--------------|
| G1 | 1 | Make one | - |
| G2 | 2 | Make two | G1 |
"""

STATE_MD = """\
# State

## Execution Status

| Spec | Mode | Progress | Last Updated |
|------|------|----------|--------------|
"""

XML = """\
<task>
  <meta>
    <id>{id}</id>
    <name>Make {id}</name>
    <layer>{layer}</layer>
    <priority>1</priority>
  </meta>
  <objective>Make it.</objective>
  <requirements><requirement>it is there</requirement></requirements>
</task>
"""

SPECKIT = """\
# Tasks: Albums

## Phase 1: Setup

- [ ] T001 Make `one.txt`
- [ ] T002 Make `two.txt`
"""
