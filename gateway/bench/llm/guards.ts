import { chunksPerStream, requestBody, type Workload } from './workloads.ts'

/** Requests whose content and whose answers are checked by a webhook that answers at once. */
export const guardWorkloads: readonly Workload[] = [
  {
    name: 'guard',
    title: '1 kB chat completion, request and answer checked by a webhook',
    body: requestBody('bench-model', false, 1024),
    ending: '}',
    connections: 16,
    // CPU of one completion without guards, and 1.6 times that for guards.
    target: 1.35 + 1.6,
  },
  {
    name: 'guard-stream',
    title: `stream of ${chunksPerStream} chunks, request and answer checked by a webhook`,
    body: requestBody('bench-model', true, 1024),
    ending: '[DONE]',
    connections: 16,
    target: 1.5 * 1.5,
  },
]

/** `llm.guardrails` that ask the webhook at a port. */
export function guardrailsAt(port: number, streaming: 'buffered' | 'windowed'): object {
  const webhook = { target: { host: `127.0.0.1:${port}` } }
  return { request: [{ name: 'in', webhook }], response: [{ name: 'out', webhook }], streaming }
}
