"""The specification of artifacts and domains, walked by groups of sentences: each names the tests that show it."""

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
EDGES, OUTLINE = "unit/agent/test_context_edges.py", "unit/agent/test_plan_outline.py"
ARTIFACTS, RETENTION = "integration/runtime/test_node_artifacts.py", "integration/persistence/test_retention.py"
ATTACHED, MAPPED, WORKDAY = (
    "e2e/test_attachments.py",
    "unit/agent/test_data_contracts.py",
    "e2e/test_workday_session.py",
)
#: What is asked for -> (file, the beginning of a test's name).
SHOWN = {
    "connector modes: solid, dotted, dashed": (EDGES, "test_solid_edges_trigger_dotted_ones_bring_context"),
    "only declared context and files reach a node": (EDGES, "test_nodes_read_only_what_the_table_says"),
    "plan store mode append": (OUTLINE, "test_append_adds_and_leaves_what_is_there_with_a_warning"),
    "plan store mode replace": (OUTLINE, "test_replace_takes_the_patch_as_the_plan"),
    "plan store mode update: id first, then key": (OUTLINE, "test_update_finds_by_id_first_and_then_by_key"),
    "ambiguous keys are hard failures": (OUTLINE, "test_a_key_that_fits_several_is_an_error_and_nothing_is_stored"),
    "missing targets are counted warnings": (OUTLINE, "test_a_target_that_is_missing_is_skipped_with_a_warning"),
    "memory add and retrieve over patterns and notes": (ARTIFACTS, "test_notes_and_patterns_are_remembered_found"),
    "memory limit 1..50": (ARTIFACTS, "test_memories_are_read_at_most_fifty_at_a_time"),
    "memory of notes in a session": ("unit/agent/test_notes.py", "test_what_was_read_is_a_memory_artifact"),
    "artifacts of every kind with their payloads": (ARTIFACTS, "test_an_accepted_session_leaves_artifacts_of_every"),
    "request and correlation ids, envelopes, paging": (ARTIFACTS, "test_pages_filters_and_unknown_ids_of_artifacts"),
    "persisted events refer to artifacts": (ARTIFACTS, "test_each_artifact_has_an_event_that_refers_to_it"),
    "artifact reads over MCP": (ARTIFACTS, "test_the_mcp_tools_read_plans_memories_milestones_and_decisions"),
    "each retention mode, in the table": (RETENTION, "test_artifacts_of_steps_go_by_the_mode_of_their_kind"),
    "each retention mode, by the service": ("e2e/test_artifact_retention.py", "test_each_mode_of_retention_removes"),
    "retention keeps the ledger": (RETENTION, "test_artifacts_go_with_their_session_and_the_ledger_stays"),
    "a domain is one distribution": ("unit/agent/test_example_domain.py", "test_the_tool_of_an_installed_domain"),
    "domains are switched by settings": (
        "unit/agent/test_installed_domains.py",
        "test_domains_that_the_setting_leaves",
    ),
    "AC-5": ("unit/agent/test_workday.py", "test_ac5_discovery_brings_the_blueprint_without_a_call"),
    "unknown domains are refused": ("unit/agent/test_domains.py", "test_a_plan_for_a_domain_that_is_not_there"),
    "one owner of each node": ("unit/agent/test_ready_tools.py", "test_a_node_has_one_owner"),
    "tests scoped by domain, integration tests": ("unit/agent/test_ready_tools.py", "test_the_suite_names_its_domains"),
    "sessions over several domains": (WORKDAY, "test_a_session_over_three_domains_keeps_the_names_of_people_out"),
    "data contracts at planning": (MAPPED, "test_an_input_with_the_name_of_a_field_gets_it"),
    "data contracts while the flow runs": (WORKDAY, "test_a_field_of_one_domain_becomes_the_input_of_another"),
    "personal data at the approval": ("unit/agent/test_domains.py", "test_the_approval_says_that_personal_data"),
    "personal data in outputs and tables": ("e2e/test_personal_data.py", "test_a_marked_name_is_kept_nowhere_but"),
    "an agentflow that uses this service's MCP": ("e2e/test_flow_builder.py", "test_"),
    "an API description becomes a called tool": ("e2e/test_api_tools.py", "test_a_described_api_becomes_a_tool"),
    "files: owner, age, session": (
        "integration/api/test_attachments.py",
        "test_a_file_is_stored_shown_and_given_to_one",
    ),
    "size bombs": ("unit/knowledge/test_documents.py", "test_a_pdf_that_unpacks_to_gigabytes_is_refused"),
    "planners see titles, first lines, passages": ("unit/agent/test_attached.py", "test_a_planner_sees_of_a_long_file"),
    "a PDF becomes a bot that answers from it": (ATTACHED, "test_a_pdf_that_goes_with_the_sentence_is_what_the_bot"),
    "a PDF becomes a document store": (ATTACHED, "test_a_pdf_becomes_a_document_store_that_the_bot_answers"),
    "images for flows that see": (ATTACHED, "test_a_photo_is_seen_by_the_model_of_the_flow_in_its_test"),
    "examples and test sets": (ATTACHED, "test_examples_are_in_the_prompt_of_the_flow_and_a_table_of_questions"),
    "examples of several prompts": ("unit/agent/test_examples.py", "test_the_persons_words_or_the_name_of_the_file"),
    "stores grow within the approval": (
        "e2e/test_store_additions.py",
        "test_a_file_for_the_store_of_a_bot_is_a_change",
    ),
    "stores are undone or named": ("e2e/test_store_crash.py", "test_a_store_whose_session_is_cancelled_while_it_fills"),
    "upserts of vector stores in chatflows": (
        "integration/flowise/test_document_stores.py",
        "test_a_flow_finds_what_was_written_to_its_vector_store_once",
    ),
}


@pytest.mark.parametrize("asked", SHOWN, ids=str)
def test_a_test_shows_it(asked: str) -> None:
    file, name = SHOWN[asked]
    text = (TESTS / file).read_text(encoding="utf-8")
    assert f"def {name}" in text
