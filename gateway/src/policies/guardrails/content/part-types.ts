/**
 * Types of content parts and nested parts of all client APIs, with their text members. A member is a text, a
 * part, or a list of both. Types without members: media, references, tool calls and tool definitions.
 */
const checkedParts: Readonly<Record<string, readonly string[]>> = {
  // OpenAI, chat completions and responses.
  text: ['text'],
  input_text: ['text'],
  output_text: ['text'],
  refusal: ['refusal'],
  output_audio: ['transcript'],
  logs: ['logs'],
  http_error: ['message'],
  mcp_protocol_error: ['message'],
  mcp_tool_execution_error: ['content'],
  // Anthropic's messages. The source of a document is read apart, because its types have the names of parts.
  document: ['title', 'context'],
  search_result: ['title', 'content'],
  tool_result: ['content'],
  web_search_tool_result: ['content'],
  web_search_result: ['title'],
  web_fetch_tool_result: ['content'],
  web_fetch_result: ['content'],
  code_execution_tool_result: ['content'],
  code_execution_result: ['stdout', 'stderr'],
  encrypted_code_execution_result: ['stderr'],
  bash_code_execution_tool_result: ['content'],
  bash_code_execution_result: ['stdout', 'stderr'],
  text_editor_code_execution_tool_result: ['content'],
  text_editor_code_execution_view_result: ['content'],
  text_editor_code_execution_str_replace_result: ['lines'],
  text_editor_code_execution_tool_result_error: ['error_message'],
  tool_search_tool_result: ['content'],
  tool_search_tool_result_error: ['error_message'],
  mcp_tool_result: ['content'],
  advisor_tool_result: ['content'],
  advisor_result: ['text'],
  compaction: ['content'],
  browser_state: ['tabs'],
}

/**
 * Reasoning of a model. In an answer it is not checked; in a request it is text of the client like all other.
 */
const reasoningParts: Readonly<Record<string, readonly string[]>> = {
  thinking: ['thinking'],
  reasoning: ['text', 'reasoning'],
  reasoning_text: ['text'],
  summary_text: ['text'],
  'reasoning.text': ['text'],
  'reasoning.summary': ['summary'],
}

const withoutText = `
  advisor_redacted_result advisor_tool_result_error audio audio_url bash_code_execution_output
  bash_code_execution_tool_result_error code_execution_output code_execution_tool_result_error computer_screenshot
  container_upload document_url fallback file image image_url input_audio input_file input_image mcp_tool_listing
  mcp_tool_use reasoning.encrypted redacted_thinking reference server_tool_use
  text_editor_code_execution_create_result tool_addition tool_reference tool_removal tool_search_tool_search_result
  tool_use video video_url web_fetch_tool_result_error web_search_tool_result_error`

const partTypes: ReadonlyMap<string, readonly string[]> = typesOf([checkedParts, reasoningParts], withoutText)

/** Members with text of a part; undefined for a type that is not known. */
export function textMembersOf(type: string): readonly string[] | undefined {
  return partTypes.get(type)
}

export function isReasoning(type: string): boolean {
  return Object.hasOwn(reasoningParts, type)
}

/** Types of items of OpenAI's responses, with the members that have text besides `content` and `output`. */
const itemTypes: ReadonlyMap<string, readonly string[]> = typesOf(
  [
    {
      reasoning: ['summary'],
      mcp_call: ['error'],
      mcp_list_tools: ['error'],
      mcp_approval_response: ['reason'],
      code_interpreter_call: ['outputs'],
      file_search_call: ['results'],
      program_output: ['result'],
    },
  ],
  `additional_tools apply_patch_call apply_patch_call_output compaction compaction_trigger computer_call
  computer_call_output configuration_update custom_tool_call custom_tool_call_output function_call function_call_output
  image_generation_call item_reference local_shell_call local_shell_call_output mcp_approval_request message program
  shell_call shell_call_output tool_search_call tool_search_output web_search_call`,
)

/** As `textMembersOf`, of an item. */
export function itemMembersOf(type: string): readonly string[] | undefined {
  return itemTypes.get(type)
}

function typesOf(
  groups: readonly Readonly<Record<string, readonly string[]>>[],
  bare: string,
): Map<string, readonly string[]> {
  const types = new Map(groups.flatMap((group) => Object.entries(group)))
  for (const type of bare.trim().split(/\s+/)) types.set(type, [])
  return types
}
