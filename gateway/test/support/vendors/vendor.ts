import type { ServerResponse } from 'node:http'
import { verifySignature } from '../aws/verify-signature.ts'
import { type MockServer, type SeenRequest, sendJson, startMockServer } from '../mock-server.ts'
import { chatWire } from './chat-wire.ts'
import { cohereWire } from './cohere-wire.ts'
import { converseWire } from './converse-wire.ts'
import { geminiWire } from './gemini-wire.ts'
import { bedrockMessagesWire, messagesWire } from './messages-wire.ts'
import { answerOther } from './other-calls.ts'
import { responsesWire } from './responses-wire.ts'
import { generate, type Received, type Tokens } from './scripted-model.ts'
import { errorCaseIn, errorOf, streamErrors } from './vendor-errors.ts'
import type { Json, Wire } from './wire.ts'

/** A call that a vendor has served. */
export type Served = { api: string; received: Received | undefined }

/** A server in the place of a vendor, with the tokens that it has billed. */
export type Vendor = MockServer & { served: Served[]; billed: Tokens }

/** Key of all vendors but Google and AWS. */
export const vendorKey = 'vendor-key-canary-8810'
export const googleAccessToken = 'ya29.vendor-canary-3391'
export const awsKey = { accessKeyId: 'AKIDVENDOR', secretAccessKey: 'vendor-secret-canary-5527' }

/** Wires by path, and whether the path streams; undefined if the body decides. */
const routes: readonly (readonly [path: RegExp, wire: Wire, streams?: boolean])[] = [
  [/\/chat\/completions$/, chatWire],
  [/\/v2\/chat$/, cohereWire],
  [/\/responses$/, responsesWire],
  [/\/messages$/, messagesWire],
  [/\/publishers\/anthropic\/models\/claude[^:]*:rawPredict$/, messagesWire, false],
  [/:streamRawPredict$/, messagesWire, true],
  [/:generateContent$/, geminiWire, false],
  [/:streamGenerateContent$/, geminiWire, true],
  [/anthropic\.[^/]*\/invoke$/, bedrockMessagesWire, false],
  [/anthropic\.[^/]*\/invoke-with-response-stream$/, bedrockMessagesWire, true],
  [/\/converse$/, converseWire, false],
  [/\/converse-stream$/, converseWire, true],
]

/** Starts a server with the paths of all vendors, and the errors of one: each row has a server of its own. */
export async function startVendor(label: string): Promise<Vendor> {
  const served: Served[] = []
  const billed: Tokens = { input: 0, cached: 0, output: 0, reasoning: 0 }
  const server = await startMockServer((request, response) => {
    if (!isAuthorized(request)) {
      sendJson(response, { status: 401, body: { error: { message: 'the credential is wrong' } } })
      return
    }
    serve(request, response, { label, served, billed })
  }, 'file')
  return Object.assign(server, { served, billed })
}

function isAuthorized({ headers, method, path, bytes }: SeenRequest): boolean {
  const { authorization = '' } = headers
  if (authorization.startsWith('AWS4'))
    return verifySignature({ method, path, headers, body: bytes }, secretOf).kind === 'valid'
  const keys = [headers['x-api-key'], headers['api-key'], headers['x-goog-api-key']]
  return keys.includes(vendorKey) || [vendorKey, googleAccessToken].includes(authorization.slice(7))
}

function secretOf(id: string): string | undefined {
  return id === awsKey.accessKeyId ? awsKey.secretAccessKey : undefined
}

function serve(
  request: SeenRequest,
  response: ServerResponse,
  { label, served, billed }: Pick<Vendor, 'served' | 'billed'> & { label: string },
): void {
  const path = decodeURIComponent(request.path.split('?')[0] ?? '')
  const route = routes.find(([pattern]) => pattern.test(path))
  if (route === undefined) {
    const other = answerOther(request, response)
    if (other === undefined) sendJson(response, { status: 404, body: { error: { message: `no ${path}` } } })
    else {
      served.push({ api: other.api, received: undefined })
      bill(billed, other.tokens)
    }
    return
  }
  const body = request.json as Json
  const [, wire, streams = body['stream'] === true] = route
  const received = wire.read(body)
  served.push({ api: wire.name, received })
  const failure = errorCaseIn(received.text)
  const error = failure && errorOf(label, failure)
  if (error !== undefined) {
    error(request, response)
    return
  }
  const generated = generate(received)
  bill(billed, { ...generated.tokens, ...(wire.reportsReasoning ? {} : { reasoning: 0 }) })
  if (!streams) {
    sendJson(response, { status: 200, body: wire.whole(generated, body) })
    return
  }
  response.writeHead(200, { 'content-type': wire.streamType })
  const isBinary = wire.streamType.startsWith('application/vnd.amazon')
  const events = wire.events(generated, body)
  const sent =
    failure === 'broken_stream'
      ? [...events.slice(0, -3), streamErrors[isBinary ? 'converse' : wire.name] ?? '']
      : events
  for (const event of sent) response.write(event)
  response.end()
}

function bill(billed: Tokens, { input, cached, output, reasoning }: Tokens): void {
  billed.input += input
  billed.cached += cached
  billed.output += output
  billed.reasoning += reasoning
}
