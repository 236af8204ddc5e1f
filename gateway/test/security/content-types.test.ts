import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { expect, it } from 'vitest'
import { itemMembersOf, textMembersOf } from '../../src/policies/guardrails/content/part-types.ts'

type Item = OpenAI.Responses.ResponseInputItem | OpenAI.Responses.ResponseOutputItem
type ItemType = Item extends infer Each
  ? Each extends { type?: infer Type }
    ? NonNullable<Type>
    : never
  : never
type ChatPart =
  | OpenAI.Chat.Completions.ChatCompletionContentPart
  | OpenAI.Chat.Completions.ChatCompletionContentPartRefusal
type ResponsesPart =
  | OpenAI.Responses.ResponseInputContent
  | OpenAI.Responses.ResponseOutputMessage['content'][number]
type Block = Anthropic.Beta.BetaContentBlockParam | Anthropic.Beta.BetaContentBlock

/** Types of the members of a block, where present. */
type Inside<T> = T extends { content?: infer Content }
  ? Content extends readonly (infer Each)[]
    ? TypeOf<Each>
    : TypeOf<Content>
  : never
type TypeOf<T> = T extends { type: infer Type extends string } ? Type : never

/** Fails to compile if a new version of an SDK has another type. */
const items: Record<Exclude<ItemType, symbol>, true> = {
  additional_tools: true,
  apply_patch_call: true,
  apply_patch_call_output: true,
  code_interpreter_call: true,
  compaction: true,
  compaction_trigger: true,
  computer_call: true,
  computer_call_output: true,
  configuration_update: true,
  custom_tool_call: true,
  custom_tool_call_output: true,
  file_search_call: true,
  function_call: true,
  function_call_output: true,
  image_generation_call: true,
  item_reference: true,
  local_shell_call: true,
  local_shell_call_output: true,
  mcp_approval_request: true,
  mcp_approval_response: true,
  mcp_call: true,
  mcp_list_tools: true,
  message: true,
  program: true,
  program_output: true,
  reasoning: true,
  shell_call: true,
  shell_call_output: true,
  tool_search_call: true,
  tool_search_output: true,
  web_search_call: true,
}
const inside: Record<Inside<Block>, true> = {
  advisor_redacted_result: true,
  advisor_result: true,
  advisor_tool_result_error: true,
  bash_code_execution_result: true,
  bash_code_execution_tool_result_error: true,
  browser_state: true,
  code_execution_result: true,
  code_execution_tool_result_error: true,
  document: true,
  encrypted_code_execution_result: true,
  image: true,
  search_result: true,
  text: true,
  text_editor_code_execution_create_result: true,
  text_editor_code_execution_str_replace_result: true,
  text_editor_code_execution_tool_result_error: true,
  text_editor_code_execution_view_result: true,
  tool_reference: true,
  tool_search_tool_result_error: true,
  tool_search_tool_search_result: true,
  web_fetch_result: true,
  web_fetch_tool_result_error: true,
  web_search_result: true,
  web_search_tool_result_error: true,
}
const parts: Record<ChatPart['type'] | ResponsesPart['type'] | Block['type'], true> = {
  advisor_tool_result: true,
  bash_code_execution_tool_result: true,
  code_execution_tool_result: true,
  compaction: true,
  container_upload: true,
  document: true,
  fallback: true,
  file: true,
  image: true,
  image_url: true,
  input_audio: true,
  input_file: true,
  input_image: true,
  input_text: true,
  mcp_tool_listing: true,
  mcp_tool_result: true,
  mcp_tool_use: true,
  output_text: true,
  redacted_thinking: true,
  refusal: true,
  search_result: true,
  server_tool_use: true,
  text: true,
  text_editor_code_execution_tool_result: true,
  thinking: true,
  tool_addition: true,
  tool_removal: true,
  tool_result: true,
  tool_search_tool_result: true,
  tool_use: true,
  web_fetch_tool_result: true,
  web_search_tool_result: true,
}

it.each(Object.keys(items))('items of type %s are known', (type) => {
  expect(itemMembersOf(type)).toBeDefined()
})

it.each(Object.keys({ ...parts, ...inside }))('parts of type %s are known', (type) => {
  expect(textMembersOf(type)).toBeDefined()
})
