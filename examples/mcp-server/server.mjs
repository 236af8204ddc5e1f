// A small MCP server on standard input and output, without dependencies: the target of the quickstart.
// Messages are JSON-RPC 2.0, one per line (https://modelcontextprotocol.io/specification/2025-11-25).
import { createInterface } from 'node:readline'

const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const tools = {
  echo: {
    description: 'Repeats a text.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    call: ({ text }) => textResult(String(text ?? '')),
  },
  add: {
    description: 'Adds two numbers.',
    inputSchema: {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a', 'b'],
    },
    call({ a, b }) {
      if (typeof a !== 'number' || typeof b !== 'number') return errorResult('a and b must be numbers')
      return { ...textResult(String(a + b)), structuredContent: { sum: a + b } }
    },
  },
  time: {
    description: 'Returns the current time.',
    inputSchema: {
      type: 'object',
      properties: { timeZone: { type: 'string', description: 'An IANA name, such as Europe/Berlin.' } },
    },
    call({ timeZone = 'UTC' }) {
      try {
        return textResult(new Date().toLocaleString('en-GB', { timeZone, timeZoneName: 'short' }))
      } catch {
        return errorResult(`unknown time zone "${timeZone}"`)
      }
    },
  },
  countdown: {
    description: 'Counts down to zero, one step every 200 ms, and reports its progress.',
    inputSchema: {
      type: 'object',
      properties: { from: { type: 'integer', minimum: 1, maximum: 50, default: 5 } },
    },
    call: ({ from = 5 }, context) =>
      countDown(Math.min(Math.max(Math.trunc(Number(from) || 5), 1), 50), context),
  },
}

const welcome = {
  uri: 'notes://welcome',
  name: 'welcome',
  title: 'Welcome',
  mimeType: 'text/plain',
  text: 'This text is a resource of the example server, which also has a prompt and a few tools.',
}

const greeting = {
  name: 'greeting',
  description: 'Requests a greeting.',
  arguments: [{ name: 'name', description: 'The person to greet.', required: true }],
}

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: versions.includes(protocolVersion) ? protocolVersion : versions[0],
    capabilities: { tools: {}, resources: {}, prompts: {} },
    serverInfo: { name: 'example', title: 'Example server', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({
      name,
      description,
      inputSchema,
    })),
  }),
  'tools/call'({ name, arguments: args = {}, _meta: { progressToken } = {} }, context) {
    if (!Object.hasOwn(tools, name)) throw rpcError(-32602, `Unknown tool: ${name}`)
    return tools[name].call(args ?? {}, { ...context, progressToken })
  },
  'resources/list'() {
    const { text, ...described } = welcome
    return { resources: [described] }
  },
  'resources/templates/list': () => ({ resourceTemplates: [] }),
  'resources/read'({ uri }) {
    if (uri !== welcome.uri) throw rpcError(-32002, `Resource not found: ${uri}`)
    const { mimeType, text } = welcome
    return { contents: [{ uri, mimeType, text }] }
  },
  'prompts/list': () => ({ prompts: [greeting] }),
  'prompts/get'({ name, arguments: args = {} }) {
    if (name !== greeting.name) throw rpcError(-32602, `Unknown prompt: ${name}`)
    const text = `Please greet ${args.name ?? 'the reader'} warmly.`
    return {
      description: greeting.description,
      messages: [{ role: 'user', content: { type: 'text', text } }],
    }
  },
}

/** Abort controllers of pending requests, by request id. */
const pending = new Map()

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const message = parseMessage(line)
  if (message === undefined) send({ id: null, error: { code: -32700, message: 'Parse error' } })
  else if (message.method === 'notifications/cancelled') pending.get(message.params?.requestId)?.abort()
  else if (message.method !== undefined && message.id !== undefined) respond(message)
})
lines.on('close', () => process.exit(0))

async function respond({ id, method, params }) {
  const controller = new AbortController()
  pending.set(id, controller)
  try {
    if (!Object.hasOwn(methods, method)) throw rpcError(-32601, 'Method not found')
    const result = await methods[method](params ?? {}, { signal: controller.signal })
    // A cancelled request gets no response.
    if (!controller.signal.aborted) send({ id, result })
  } catch (error) {
    send({ id, error: { code: error.code ?? -32603, message: error.message } })
  } finally {
    pending.delete(id)
  }
}

async function countDown(from, { signal, progressToken }) {
  for (let step = 1; step <= from && !signal.aborted; step += 1) {
    const params = { progressToken, progress: step, total: from, message: `${from - step + 1}` }
    if (progressToken !== undefined) send({ method: 'notifications/progress', params })
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return textResult('Zero!')
}

function textResult(text) {
  return { content: [{ type: 'text', text }] }
}

function errorResult(text) {
  return { ...textResult(text), isError: true }
}

function rpcError(code, message) {
  return Object.assign(new Error(message), { code })
}

function parseMessage(line) {
  try {
    const message = JSON.parse(line)
    return typeof message === 'object' && message !== null ? message : undefined
  } catch {
    return undefined
  }
}

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}
