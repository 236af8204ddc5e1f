import type { MessagePort, Worker } from 'node:worker_threads'
import { ConfigRejected } from '../../config/config-rejected.ts'
import { messageOf } from '../../lib/thrown.ts'

/** Calls and notes between two threads, in order. */
export type Calls = {
  /** Calls the other side. Rejects with the error of its handler, or with that of `end`. */
  call(name: string, request: unknown, transfer?: readonly MessagePort[]): Promise<unknown>
  /** Sends a message without a reply. */
  note(name: string, value: unknown, transfer?: readonly MessagePort[]): void
  /** Rejects all calls in progress, and every later one. */
  end(error: Error): void
}

/** Handlers by name. The result of a note is ignored. */
export type Handlers = Record<string, (request: never) => unknown>

type Message =
  | { kind: 'call'; id: number; name: string; request: unknown }
  | { kind: 'note'; name: string; request: unknown }
  | { kind: 'value'; id: number; value: unknown }
  | { kind: 'error'; id: number; error: PlainError }

/** An error as plain data. */
type PlainError = { message: string; issues?: readonly string[] }

type Waiting = { resolve(value: unknown): void; reject(error: Error): void }

/** Connects to the other side of a port. Handlers of unknown names fail the call. */
export function createCalls(port: MessagePort | Worker, handlers: Handlers): Calls {
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  let ended: Error | undefined

  function post(message: Message, transfer: readonly MessagePort[] = []): void {
    port.postMessage(message, [...transfer])
  }

  async function respond(id: number, name: string, request: unknown): Promise<void> {
    try {
      const value = await run(handlers, name, request)
      post({ kind: 'value', id, value })
    } catch (error) {
      post({ kind: 'error', id, error: plainOf(error) })
    }
  }

  port.on('message', (message: Message) => {
    switch (message.kind) {
      case 'call':
        void respond(message.id, message.name, message.request)
        return
      case 'note':
        void run(handlers, message.name, message.request)
        return
      case 'value':
      case 'error': {
        const call = waiting.get(message.id)
        waiting.delete(message.id)
        if (message.kind === 'value') call?.resolve(message.value)
        else call?.reject(errorOf(message.error))
      }
    }
  })

  return {
    call(name, request, transfer) {
      if (ended !== undefined) return Promise.reject(ended)
      lastId += 1
      const id = lastId
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        post({ kind: 'call', id, name, request }, transfer)
      })
    },
    note(name, value, transfer) {
      if (ended === undefined) post({ kind: 'note', name, request: value }, transfer)
    },
    end(error) {
      ended ??= error
      for (const call of waiting.values()) call.reject(error)
      waiting.clear()
    },
  }
}

function run(handlers: Handlers, name: string, request: unknown): unknown {
  const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined
  if (handler === undefined) throw new Error(`unknown call ${name}`)
  return handler(request as never)
}

function plainOf(error: unknown): PlainError {
  return error instanceof ConfigRejected
    ? { message: error.message, issues: error.issues }
    : { message: messageOf(error) }
}

function errorOf({ message, issues }: PlainError): Error {
  return issues === undefined ? new Error(message) : new ConfigRejected([...issues])
}
