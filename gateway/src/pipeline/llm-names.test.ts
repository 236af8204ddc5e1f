import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../lib/json/json.ts'
import { findAmbiguousCohereName, findAmbiguousInvokeName, findAmbiguousLlmName } from './llm-names.ts'

const message = (content: unknown) =>
  ({ model: 'm', messages: [{ role: 'assistant', content }] }) as JsonObject

describe('names of LLM calls', () => {
  it('are checked in the input of a request with the type of a tool call', () => {
    const input = [{ role: 'user', content: 'hello', Content: 'SECRET' }]
    expect(findAmbiguousLlmName({ type: 'tool_use', model: 'm', input })).toEqual({
      kind: 'ambiguous',
      path: 'input[0].Content',
    })
  })

  it.each([
    ['input of a tool call', message([{ type: 'tool_use', input: { Content: 1, content: 2 } }])],
    [
      'tools of an MCP server',
      { model: 'm', tools: [{ type: 'mcp_toolset', configs: { Text: { enabled: true } } }] },
    ],
    [
      'tokens as names',
      { choices: [{ text: 'The', logprobs: { top_logprobs: [{ The: -1, the: -2, Text: -3 }] } }] },
    ],
    ['JSON of LiteLLM', { model: 'm', litellm_metadata: { User: 'u' } }],
  ])('are free in %s', (_, value) => {
    expect(findAmbiguousLlmName(value)).toBeUndefined()
  })

  it('are not counted in log probabilities', () => {
    const token = { token: 'a', logprob: -1, bytes: [97] }
    const content = Array.from({ length: 2_000 }, () => ({ ...token, top_logprobs: Array(20).fill(token) }))
    expect(findAmbiguousLlmName({ choices: [{ index: 0, logprobs: { content } }] })).toBeUndefined()
  })
})

describe('names of InvokeModel', () => {
  const toolUse = { toolUseId: 't', name: 'n', input: { URL: 'x' } }
  const nova: JsonObject = { messages: [{ role: 'assistant', content: [{ toolUse }] }] }

  it('are free below the top, because the API is that of a vendor', () => {
    expect(findAmbiguousInvokeName(nova)).toBeUndefined()
    expect(findAmbiguousInvokeName({ ...nova, Messages: [] })).toMatchObject({ path: 'Messages' })
  })

  it('are those of messages with a version of Anthropic', () => {
    const claude = { anthropic_version: 'bedrock-2023-05-31', messages: [{ role: 'user', Content: 'x' }] }
    expect(findAmbiguousInvokeName(claude)).toMatchObject({ path: 'messages[0].Content' })
  })
})

it('names of documents and results of tools are free in chat of Cohere, other names are not', () => {
  const citing = (source: JsonObject) => ({ message: { citations: [{ sources: [source] }] } })
  const free = { Title: 'a', Text: 'b' }
  expect(findAmbiguousCohereName(citing({ type: 'tool', tool_output: free }))).toBeUndefined()
  expect(findAmbiguousCohereName(citing({ type: 'document', document: free }))).toBeUndefined()
  expect(findAmbiguousCohereName(citing({ Tool_Output: {} }))).toMatchObject({ kind: 'ambiguous' })
})
