import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { chatWire } from '../../test/support/vendors/chat-wire.ts'
import { converseWire } from '../../test/support/vendors/converse-wire.ts'
import { geminiWire } from '../../test/support/vendors/gemini-wire.ts'
import { bedrockMessagesWire, messagesWire } from '../../test/support/vendors/messages-wire.ts'
import type { Generated } from '../../test/support/vendors/scripted-model.ts'
import type { Wire } from '../../test/support/vendors/wire.ts'
import { chunksPerStream } from './workloads.ts'

/**
 * A server in the place of several vendors: constant responses in the API of the path. Streams flush each
 * chunk as a separate write.
 */

type Answers = { readonly whole: Buffer; readonly chunks: readonly Buffer[]; readonly streamType: string }

const text = (characters: number): Generated => ({
  ...{ reasoning: '', calls: [], finish: 'stop' },
  text: 'A gateway stands between clients and models. '.repeat(characters / 45),
  tokens: { input: 180, cached: 0, output: 96, reasoning: 0 },
})

/** Deltas of streams have seven characters; the other events are about four. */
const streamed = text((chunksPerStream - 4) * 7)
const request = { model: 'bench-model', stream_options: { include_usage: true } }

function answersOf(wire: Wire): Answers {
  return {
    whole: Buffer.from(JSON.stringify(wire.whole(text(405), request))),
    chunks: wire.events(streamed, request).map((event) => Buffer.from(event)),
    streamType: wire.streamType,
  }
}

const answersByPath: readonly (readonly [part: string, answers: Answers])[] = [
  ['/chat/completions', answersOf(chatWire)],
  ['/messages', answersOf(messagesWire)],
  ['awPredict', answersOf(messagesWire)],
  ['enerateContent', answersOf(geminiWire)],
  ['/invoke', answersOf(bedrockMessagesWire)],
  ['/converse', answersOf(converseWire)],
]

function answer(incoming: IncomingMessage, response: ServerResponse): void {
  const { url = '' } = incoming
  const [, answers] = answersByPath.find(([part]) => url.includes(part)) ?? []
  let streams = url.includes('stream')
  incoming.on('data', (chunk: Buffer) => {
    streams ||= chunk.includes('"stream":true')
  })
  incoming.on('end', () => {
    if (answers === undefined) response.writeHead(404).end()
    else if (streams) {
      response.writeHead(200, { 'content-type': answers.streamType })
      stream(response, answers.chunks, 0)
    } else {
      const { whole } = answers
      const headers = { 'content-type': 'application/json', 'content-length': whole.byteLength }
      response.writeHead(200, headers).end(whole)
    }
  })
}

function stream(response: ServerResponse, chunks: readonly Buffer[], sent: number): void {
  if (response.destroyed) return
  response.write(chunks[sent])
  if (sent + 1 < chunks.length) setImmediate(stream, response, chunks, sent + 1)
  else response.end()
}

const server = createServer({ keepAliveTimeout: 60_000 }, answer)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))
