import { expect, it } from 'vitest'
import {
  bodyOf,
  call,
  type FixtureCall,
  fixtureGateway,
  jsonReply,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { filesOf } from './message-files.ts'

const output = (id: string) => ({ type: 'bash_code_execution_output', file_id: id })
const result = (...files: string[]) => ({
  type: 'bash_code_execution_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: {
    type: 'bash_code_execution_result',
    stdout: '',
    stderr: '',
    return_code: 0,
    content: files.map(output),
  },
})

it('finds files in results of code only', () => {
  const content = [
    result('file_1', 'file_2'),
    {
      type: 'code_execution_tool_result',
      content: { type: 'code_execution_result', content: [output('file_3')] },
    },
    { type: 'container_upload', file_id: 'file_4' },
    { type: 'mcp_tool_result', content: [output('file_5')] },
    { type: 'tool_use', input: output('file_6') },
    { type: 'text', text: 'file_7', citations: [{ file_id: 'file_8' }] },
  ]
  expect(filesOf({ content })).toEqual(['file_1', 'file_2', 'file_3', 'file_4'])
  expect(filesOf({ type: 'content_block_start', content_block: result('file_9') })).toEqual(['file_9'])
})

const usage = { input_tokens: 1, output_tokens: 1 }
const text = {
  type: 'text',
  text: 'see "file_made1"',
  citations: [{ type: 'page_location', file_id: 'file_own1' }],
}
const message = { type: 'message', role: 'assistant', content: [result('file_made1'), text], usage }
const events = [
  { type: 'message_start', message: { ...message, content: [] } },
  { type: 'content_block_start', index: 0, content_block: result('file_made1') },
  { type: 'content_block_start', index: 1, content_block: { ...text, citations: [] } },
  { type: 'content_block_delta', index: 1, delta: { type: 'citations_delta', citation: text.citations[0] } },
  { type: 'message_stop' },
]

it.each([false, true])('have ids of the client in messages, streamed: %s', async (stream) => {
  const params = { apiKey: 'k', baseUrl: 'https://one.test/v1' }
  const gateway = fixtureGateway({ models: [{ name: 'm', provider: 'anthropic', params }] }, ({ path }) => {
    if (path.endsWith('/content')) return { status: 200, headers: {}, body: Buffer.from('made') }
    if (path.endsWith('/files')) return jsonReply({ id: 'file_own1', type: 'file' })
    if (stream) return streamReply(events.map((event) => `data: ${JSON.stringify(event)}\n\n`))
    return jsonReply(message)
  })
  const headers = { 'anthropic-version': '2023-06-01' }
  const form = '--b1\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n--b1--\r\n'
  const upload: FixtureCall = {
    path: '/v1/files',
    headers: { ...headers, 'content-type': 'multipart/form-data; boundary=b1' },
    body: Buffer.from(form),
  }
  const own = JSON.parse((await call(gateway, upload)).text).id
  const ask = (content: object[]) => ({
    path: '/v1/messages',
    headers,
    body: {
      ...{ model: 'm', max_tokens: 9, stream },
      tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
      messages: [{ role: 'user', content }],
    },
  })
  const source = { type: 'document', source: { type: 'file', file_id: own } }
  const reply = await call(gateway, ask([source]))
  expect(reply.text).toContain(`"file_id":"${own}"`)
  const [, made = ''] = /"bash_code_execution_output","file_id":"([\w-]+)"/.exec(reply.text) ?? []
  expect(made).toMatch(/^file_[\w-]{100,}$/)
  // Texts of the model are unchanged.
  expect(reply.text).toContain('see \\"file_made1\\"')
  expect(reply.text).not.toContain('"file_own1"')
  const content = await call(gateway, { method: 'GET', path: `/v1/files/${made}/content`, headers })
  expect([content.text, gateway.sent.at(-1)?.path]).toEqual(['made', '/v1/files/file_made1/content'])
  await call(gateway, ask([source, result(made)]))
  expect(bodyOf(gateway.sent.at(-1))).toMatchObject({
    messages: [{ content: [{ source: { file_id: 'file_own1' } }, result('file_made1')] }],
  })
})
