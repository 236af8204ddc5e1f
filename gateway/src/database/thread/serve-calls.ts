import type { MessagePort } from 'node:worker_threads'
import { messageOf } from '../../lib/thrown.ts'

export type ToDatabaseThread<Request> =
  | { readonly kind: 'call'; readonly id: number; readonly request: Request }
  | { readonly kind: 'close' }

export type FromDatabaseThread<Value, Notice> =
  | { readonly kind: 'value'; readonly id: number; readonly value: Value }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
  | { readonly kind: 'notice'; readonly notice: Notice }
  | { readonly kind: 'closed' }

export type CallServer<Request, Value> = {
  run(request: Request): Promise<Value>
  close(): Promise<void>
}

/** Serves the calls of `createDatabaseThread` in its thread. Returns a function that sends a notice. */
export function serveCalls<Request, Value, Notice = never>(
  port: MessagePort,
  { run, close }: CallServer<Request, Value>,
): (notice: Notice) => void {
  const send = (message: FromDatabaseThread<Value, Notice>) => port.postMessage(message)

  async function answer(id: number, request: Request): Promise<void> {
    try {
      send({ kind: 'value', id, value: await run(request) })
    } catch (error) {
      send({ kind: 'failed', id, message: messageOf(error) })
    }
  }

  async function end(): Promise<void> {
    await close()
    send({ kind: 'closed' })
  }

  port.on('message', (message: ToDatabaseThread<Request>) => {
    if (message.kind === 'call') void answer(message.id, message.request)
    else void end()
  })
  return (notice) => send({ kind: 'notice', notice })
}
