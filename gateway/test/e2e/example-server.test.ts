import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'

// The small server that the examples come with, as the official client sees it.

const server = fileURLToPath(new URL('../../../examples/mcp-server/server.mjs', import.meta.url))

async function connect(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [server] }))
  endAfter('test', () => client.close())
  return client
}

it('offers tools, a resource and a prompt', async () => {
  const client = await connect()
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['echo', 'add', 'time', 'countdown'])
  expect(await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } })).toMatchObject({
    structuredContent: { sum: 5 },
  })
  expect(await client.callTool({ name: 'time', arguments: { timeZone: 'Nowhere' } })).toMatchObject({
    isError: true,
  })
  await expect(client.callTool({ name: 'constructor' })).rejects.toThrow('Unknown tool')
  const [resource] = (await client.listResources()).resources
  expect((await client.readResource({ uri: resource?.uri ?? '' })).contents).toHaveLength(1)
  const prompt = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } })
  expect(JSON.stringify(prompt.messages)).toContain('Ada')
})

it('reports progress, and stops when it is cancelled', async () => {
  const client = await connect()
  const steps: number[] = []
  const result = await client.callTool({ name: 'countdown', arguments: { from: 3 } }, undefined, {
    onprogress: ({ progress }) => steps.push(progress),
  })
  expect(result['content']).toEqual([{ type: 'text', text: 'Zero!' }])
  expect(steps).toEqual([1, 2, 3])
  const controller = new AbortController()
  const counting = client.callTool({ name: 'countdown', arguments: { from: 50 } }, undefined, {
    signal: controller.signal,
    onprogress: () => controller.abort('enough'),
  })
  await expect(counting).rejects.toThrow('enough')
  expect(await client.callTool({ name: 'echo', arguments: { text: 'still here' } })).toMatchObject({
    content: [{ type: 'text', text: 'still here' }],
  })
})
