import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { endAfter, type Lifetime } from './cleanup.ts'
import { openAiKey } from './mock-openai.ts'
import { member } from './mock-server.ts'

/** A connection as the provider has seen it. */
export type RealtimeConnection = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly events: Record<string, unknown>[]
  readonly socket: WebSocket
  /** The TCP connection below. */
  readonly stream: Duplex
  closed: { code: number; reason: string } | undefined
}

/** A provider of OpenAI's Realtime API: text responses whose words are those of the last item. */
export type MockRealtime = {
  readonly url: string
  readonly connections: RealtimeConnection[]
  /** Status for the next upgrades, in place of 101. */
  refuseWith: number | undefined
  /** Sum of the billed tokens. */
  billed: number
}

/**
 * Starts the double. `wait` in an item leaves the response in progress, until it is cancelled; `speak` is
 * answered by audio with a transcript.
 */
export async function mockRealtime(lifetime: Lifetime = 'test'): Promise<MockRealtime> {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
  })
  const server = createServer((_, response) => response.writeHead(404).end())
  const streams = new Set<Duplex>()
  server.on('upgrade', (request, stream, head) => {
    streams.add(stream)
    stream.on('error', () => {})
    stream.on('close', () => streams.delete(stream))
    const { url = '', headers } = request
    const isKnown = headers.authorization === `Bearer ${openAiKey}` || headers['api-key'] === openAiKey
    const status = mock.refuseWith ?? (isKnown ? 101 : 401)
    if (status !== 101) {
      const body = JSON.stringify({ error: { message: 'no', type: 'server_error', code: 'refused' } })
      stream.end(
        `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      )
      return
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      const connection = { path: url, headers, events: [], socket, stream, closed: undefined }
      mock.connections.push(connection)
      serve(connection, mock)
    })
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
  endAfter(lifetime, () => {
    for (const stream of streams) stream.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const mock: MockRealtime = {
    url: `http://127.0.0.1:${port}`,
    connections: [],
    refuseWith: undefined,
    billed: 0,
  }
  return mock
}

function serve(connection: RealtimeConnection, mock: MockRealtime): void {
  const { socket, events } = connection
  const query = new URLSearchParams(connection.path.split('?')[1])
  let count = 0
  let text = 'nothing'
  let inProgress: string | undefined
  const send = (type: string, fields: object) => {
    count += 1
    socket.send(JSON.stringify({ type, event_id: `event_${count}`, ...fields }))
  }
  const finish = (id: string, status: string, output: unknown[]) => {
    inProgress = undefined
    mock.billed += 30
    send('response.done', { response: { id, object: 'realtime.response', status, output, usage } })
  }

  function respond(): void {
    count += 1
    const id = `resp_${count}`
    send('response.created', {
      response: { id, object: 'realtime.response', status: 'in_progress', output: [] },
    })
    inProgress = id
    const place = { response_id: id, item_id: `item_${id}`, output_index: 0, content_index: 0 }
    if (text.includes('wait')) {
      send('response.output_text.delta', { ...place, delta: 'so far ' })
      return
    }
    if (text.includes('speak')) {
      send('response.output_audio.delta', { ...place, delta: 'AAAA'.repeat(100) })
      send('response.output_audio_transcript.delta', { ...place, delta: text })
      send('response.output_audio.done', place)
      const part = [{ type: 'output_audio', transcript: text }]
      finish(id, 'completed', [{ id: place.item_id, type: 'message', role: 'assistant', content: part }])
      return
    }
    for (const word of text.split(' ')) send('response.output_text.delta', { ...place, delta: `${word} ` })
    send('response.output_text.done', { ...place, text: `${text} ` })
    const content = [{ type: 'output_text', text: `${text} ` }]
    finish(id, 'completed', [{ id: place.item_id, type: 'message', role: 'assistant', content }])
  }

  send('session.created', { session: { type: 'realtime', id: 'sess_1', model: query.get('model') } })
  socket.on('message', (data, isBinary) => {
    const event = isBinary ? { type: 'binary' } : JSON.parse(String(data))
    events.push(event)
    switch (event.type) {
      case 'session.update':
        send('session.updated', { session: event.session })
        return
      case 'conversation.item.create':
        text = String(member(event, 'item', 'content', 0, 'text') ?? '')
        send('conversation.item.added', { item: event.item })
        return
      case 'response.create':
        if (inProgress === undefined) respond()
        else
          send('error', {
            error: { type: 'invalid_request_error', code: 'active', event_id: event.event_id },
          })
        return
      case 'input_audio_buffer.commit':
        text = 'you said something'
        send('conversation.item.input_audio_transcription.completed', {
          item_id: 'item_audio',
          transcript: 'hello',
          usage: { type: 'tokens', total_tokens: 5, input_tokens: 4, output_tokens: 1 },
        })
        respond()
        return
      case 'conversation.item.retrieve': {
        const content = [{ type: 'output_text', text }]
        const item = { id: event.item_id, type: 'message', role: 'assistant', content }
        send('conversation.item.retrieved', { item })
        return
      }
      case 'response.cancel':
        if (inProgress !== undefined) finish(inProgress, 'cancelled', [])
    }
  })
  socket.on('error', () => {})
  socket.on('close', (code, reason) => {
    connection.closed = { code, reason: reason.toString() }
  })
}

const usage = {
  total_tokens: 30,
  input_tokens: 20,
  output_tokens: 10,
  input_token_details: {
    text_tokens: 8,
    audio_tokens: 12,
    cached_tokens: 6,
    cached_tokens_details: { text_tokens: 2, audio_tokens: 4 },
  },
  output_token_details: { text_tokens: 7, audio_tokens: 3 },
}
