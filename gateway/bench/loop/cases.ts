const mebibyte = 1024 * 1024

/** Configurations that are measured, each in a process of its own. */
export const gatewayKinds = ['plain', 'guarded', 'hooked', 'ruled', 'mcp', 'openapi'] as const

/** One request that may occupy the event loop. */
export type LoopCase = {
  name: string
  gateway: (typeof gatewayKinds)[number]
  path: string
  body(bytes: number): string
  /** Size of the largest body that is accepted, where that is less than `sizes.large`. */
  maxBytes?: number
  /** The first request counts, which reads a document. */
  countsFirst?: true
}

const fill = (piece: string, bytes: number) =>
  piece.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(piece))))
const members = (count: number, name: string, value = '0') =>
  Array.from({ length: count }, (_, index) => `"${name}${index}":${value}`).join(',')

/** Values of about so many bytes, each the worst for some step of reading, checking or writing. */
const contents: Record<string, (bytes: number) => string> = {
  text: (bytes) => `"${fill('hello world ', bytes)}"`,
  letters: (bytes) => `"${fill('漢字é', bytes)}"`,
  quotes: (bytes) => `"${fill('\\"', bytes)}"`,
  backslashes: (bytes) => `"${fill('\\\\', bytes)}"`,
  escapes: (bytes) => `"${fill('\\u6f22', bytes)}"`,
  digits: (bytes) => `"${fill('4111 1111 1111 1112 ', bytes)}"`,
  parts: (bytes) =>
    `[${Array.from({ length: 20_000 }, () => `{"type":"text","text":"${fill('words ', bytes / 20_000)}"}`).join(',')}]`,
}

const message = (content: string, rest = '') =>
  `{"model":"gpt-4o","messages":[{"role":"user","content":${content}}]${rest}}`

const chat = '/v1/chat/completions'

const chatBodies: Record<string, (bytes: number) => string> = {
  ...Object.fromEntries(
    Object.entries(contents).map(([name, content]) => [name, (bytes: number) => message(content(bytes))]),
  ),
  'many messages': (bytes) =>
    `{"model":"gpt-4o","messages":[${Array.from({ length: 20_000 }, () => `{"role":"user","content":"${fill('words ', bytes / 20_000)}"}`).join(',')}]}`,
  'many keys': () =>
    message(
      '"a"',
      `,"x":[${Array.from({ length: 9 }, (_, index) => `{${members(9_999, `K${index}_`)}}`).join(',')}]`,
    ),
  'escaped keys': () =>
    message(
      '"a"',
      `,"\\u0078":[${Array.from({ length: 9 }, (_, index) => `{${members(9_999, `k${index}_`)}}`).join(',')}]`,
    ),
  'many items': () => message('"a"', `,"x":[${fill('0,', 1_990_000)}0]`),
  'long strings': (bytes) => message('"a"', `,"x":[${fill(`"${'y'.repeat(200)}",`, bytes)}0]`),
  'keys of one object': () => message('"a"', `,"x":{${members(900_000, 'k')}}`),
  'a key twice': (bytes) => message(`"${fill('hello ', bytes)}"`, ',"a":{"b":1,"b":2}'),
  'tool input': (bytes) =>
    `{"model":"gpt-4o","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(`{"x":[${fill('1,', bytes / 2)}1]}`)}}}]},{"role":"tool","tool_call_id":"c","content":"b"}]}`,
}

function chatCases(gateway: LoopCase['gateway'], label: string, model = 'gpt-4o'): LoopCase[] {
  return Object.entries(chatBodies).map(([name, body]) => ({
    name: `${label}, ${name}`,
    gateway,
    path: chat,
    body: (bytes: number) => body(bytes).replace('"gpt-4o"', JSON.stringify(model)),
  }))
}

const answer = (name: string, model: string, path = chat): LoopCase => ({
  name,
  gateway: 'plain',
  path,
  body: () =>
    path === chat
      ? message('"a"').replace('gpt-4o', model)
      : JSON.stringify({ model, input: 'a', messages: [], max_tokens: 5 }),
})

const rpc = (method: string, params: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`

export const loopCases: LoopCase[] = [
  ...chatCases('plain', 'chat'),
  ...chatCases('plain', 'translated', 'claude'),
  ...chatCases('guarded', 'patterns'),
  ...chatCases('hooked', 'webhook'),
  ...chatCases('ruled', 'rules'),
  ...chatCases('plain', 'echo', 'echo'),
  answer('answer: embeddings of 48 MiB', 'embeddings', '/v1/embeddings'),
  answer('answer: text of 32 MiB', 'large-text'),
  answer('answer: text of 32 MiB, translated', 'claude-large'),
  answer('answer: 500,000 keys', 'keys'),
  answer('answer: stream with events of 1 MB', 'stream'),
  ...Object.entries(contents).map(
    ([name, content]): LoopCase => ({
      name: `MCP, ${name}`,
      gateway: 'mcp',
      path: '/mcp',
      maxBytes: 3.4 * mebibyte,
      body: (bytes) => rpc('tools/call', `{"name":"echo","arguments":{"text":${content(bytes)}}}`),
    }),
  ),
  {
    name: 'MCP, 900,000 keys',
    gateway: 'mcp',
    path: '/mcp',
    body: () => rpc('tools/call', `{"name":"echo","arguments":{${members(900_000, 'k')}}}`),
  },
  {
    name: 'MCP, many keys',
    gateway: 'mcp',
    path: '/mcp',
    body: () =>
      rpc(
        'tools/call',
        `{"name":"echo","arguments":{"x":[${Array.from({ length: 9 }, (_, index) => `{${members(9_999, `K${index}_`)}}`).join(',')}]}}`,
      ),
  },
  {
    name: 'MCP, tools of an OpenAPI document',
    gateway: 'openapi',
    path: '/mcp',
    countsFirst: true,
    body: () => rpc('tools/list', '{}'),
  },
]

export const sizes = { small: 250 * 1024, middle: 1.5 * mebibyte, large: 31 * mebibyte }
