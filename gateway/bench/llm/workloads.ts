import type { Subject } from '../subjects/processes.ts'

/** Events of one streamed answer, `[DONE]` included. */
export const chunksPerStream = 200

/** A model whose stream never ends by itself. */
export const heldModel = 'bench-held'

/** A model with a response cache. */
export const cachedModel = 'bench-cached'

export type Workload = {
  name:
    | 'completion'
    | 'prompt'
    | 'stream'
    | 'cache'
    | 'providers'
    | 'translate'
    | 'translate-stream'
    | 'mcp-json'
    | 'mcp-sse'
    | 'http-get'
    | 'http-post'
    | 'guard'
    | 'guard-stream'
    | 'policies'
  title: string
  body: Buffer
  /** Text in the last bytes of a complete response. */
  ending: string
  connections: number
  /** Most that Tollgate may cost, as a multiple of the relay. */
  target: number
  /** Complete requests, where the bytes depend on the receiver; connections take them in rotation. */
  requestsTo?: (subject: Subject) => Promise<string[] | undefined>
}

export const workloads: readonly Workload[] = [
  {
    name: 'completion',
    title: '1 kB chat completion',
    body: requestBody('bench-model', false, 1024),
    ending: '}',
    connections: 16,
    target: 1.35,
  },
  {
    name: 'prompt',
    title: '100 kB prompt',
    body: requestBody('bench-model', false, 100 * 1024),
    ending: '}',
    connections: 16,
    target: 1.35,
  },
  {
    name: 'stream',
    title: `stream of ${chunksPerStream} chunks`,
    body: requestBody('bench-model', true, 1024),
    ending: '[DONE]',
    connections: 16,
    target: 1.5,
  },
  {
    name: 'cache',
    title: '1 kB chat completion from the response cache',
    body: requestBody(cachedModel, false, 1024),
    ending: '}',
    connections: 16,
    target: 0.8,
  },
]

/** A chat completion request of `bytes` bytes, in messages of the length that people write. */
export function requestBody(model: string, stream: boolean, bytes: number): Buffer {
  const messages = [{ role: 'system', content: 'You answer in one sentence.' }]
  const make = () => JSON.stringify({ model, stream, temperature: 0.2, messages })
  const sentence =
    'What does a "gateway" do between a client and a model?\nExplain it with an example, please. '
  for (let left = bytes - make().length; left > 60; left = bytes - make().length) {
    const text = sentence.repeat(Math.ceil(left / sentence.length)).slice(0, Math.min(2000, left - 40))
    messages.push({ role: messages.length % 2 === 1 ? 'user' : 'assistant', content: text })
  }
  return Buffer.from(make())
}
