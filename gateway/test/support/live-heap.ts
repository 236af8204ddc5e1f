import { within } from './wait.ts'

/**
 * Bytes of live objects of a process that was started with `--inspect=127.0.0.1:PORT`, after a full
 * collection.
 */
export async function liveHeap(inspectorPort: number): Promise<number> {
  const list = await fetch(`http://127.0.0.1:${inspectorPort}/json/list`)
  const [{ webSocketDebuggerUrl }]: [{ webSocketDebuggerUrl: string }] = JSON.parse(await list.text())
  const socket = new WebSocket(webSocketDebuggerUrl)
  try {
    await within('the inspector opens', once(socket, 'open'))
    await ask(socket, 1, 'HeapProfiler.collectGarbage')
    const { usedSize } = await ask(socket, 2, 'Runtime.getHeapUsage')
    return Number(usedSize)
  } finally {
    socket.close()
  }
}

async function ask(socket: WebSocket, id: number, method: string): Promise<Record<string, unknown>> {
  const answered = once(socket, 'message')
  socket.send(JSON.stringify({ id, method }))
  const event = await within(`the inspector answers ${method}`, answered, 30_000)
  const { result }: { result: Record<string, unknown> } = JSON.parse(
    'data' in event ? String(event.data) : '',
  )
  return result
}

function once(socket: WebSocket, type: 'open' | 'message'): Promise<Event> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(type, resolve, { once: true })
    socket.addEventListener('error', () => reject(new Error('the inspector refuses')), { once: true })
  })
}
