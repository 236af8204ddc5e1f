import type { JsonObject } from '../../../../lib/json/json.ts'
import { toolName } from '../limits.ts'
import { stringOf } from '../messages-to-chat/reply.ts'
import { invalidResponse } from '../upstream-error.ts'
import type { Delta } from './texts.ts'

/** Calls of tools of a streamed response as deltas of chat. */
export type Calls = {
  readonly count: number
  begin(item: JsonObject): { call: Call; delta: Delta }
}

/** A call; its input is not retained. */
export type Call = {
  fragment(text: string): Delta[]
  /** The input of a complete item, if no fragment of it was sent. */
  rest(item: JsonObject): Delta[]
}

export function createCalls(): Calls {
  let count = 0
  return {
    get count() {
      return count
    },
    begin({ type, call_id: id, name: given }) {
      const name = toolName(given)
      if (typeof id !== 'string' || name === '') throw invalidResponse('a tool call without call_id or name')
      const index = count
      count += 1
      const isCustom = type === 'custom_tool_call'
      const made = isCustom ? { custom: { name, input: '' } } : { function: { name, arguments: '' } }
      const fields = { tool_calls: [{ index, id, type: isCustom ? 'custom' : 'function', ...made }] }
      return { call: isCustom ? customCall(index) : functionCall(index), delta: { fields } }
    },
  }
}

function functionCall(index: number): Call {
  return createCall(
    (text) => ({ tool_calls: [{ index, function: { arguments: text } }] }),
    // Clients parse the arguments as JSON.
    (item) => stringOf(item.arguments) || '{}',
  )
}

function customCall(index: number): Call {
  return createCall(
    (input) => ({ tool_calls: [{ index, custom: { input } }] }),
    (item) => stringOf(item.input),
  )
}

function createCall(fieldsOf: (text: string) => JsonObject, wholeOf: (item: JsonObject) => string): Call {
  let wrote = false
  const fragment = (text: string): Delta[] => {
    if (text === '') return []
    wrote = true
    return [{ fields: fieldsOf(text) }]
  }
  return { fragment, rest: (item) => (wrote ? [] : fragment(wholeOf(item))) }
}
