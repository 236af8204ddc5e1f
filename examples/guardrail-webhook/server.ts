// Guardrail webhook without dependencies: `node examples/guardrail-webhook/server.ts` (Node.js 24 or newer).
// Rejects requests with the text "block", and replaces "mask" with "****" in requests and responses. Other
// content passes. WEBHOOK_ADDRESS is the listening address, default 127.0.0.1:8000.
import { createServer, type IncomingMessage } from 'node:http'

type Message = { role: string; content: string }
type Action =
  | { reason: string }
  | { body: string; status_code: number; reason: string }
  | { body: { messages: Message[] } | { choices: { message: Message }[] }; reason: string }

const maxBodyBytes = 64 * 1024 * 1024

/** Checks a request to the model. */
function checkRequest(messages: Message[]): Action {
  if (messages.some(({ content }) => content.includes('block'))) {
    return { body: 'request blocked', status_code: 403, reason: 'Inappropriate content detected' }
  }
  if (!messages.some(({ content }) => content.includes('mask'))) return { reason: 'passed' }
  return { body: { messages: messages.map(maskMessage) }, reason: 'Sensitive content detected' }
}

/** Checks a response of the model. */
function checkResponse(choices: { message: Message }[]): Action {
  if (!choices.some(({ message }) => message.content.includes('mask'))) return { reason: 'passed' }
  return {
    body: { choices: choices.map(({ message }) => ({ message: maskMessage(message) })) },
    reason: 'Sensitive content detected',
  }
}

function maskMessage({ role, content }: Message): Message {
  return { role, content: content.replaceAll('mask', '****') }
}

function chooseAction(path: string | undefined, body: unknown): Action | undefined {
  if (path === '/request') return checkRequest(readList(body, 'messages').filter(isMessage))
  if (path === '/response') return checkResponse(readList(body, 'choices').filter(isChoice))
  return undefined
}

function readList(body: unknown, name: string): unknown[] {
  const inner = isObject(body) && isObject(body['body']) ? body['body'][name] : undefined
  if (!Array.isArray(inner)) throw new Error(`body.${name} is missing`)
  return inner
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isMessage(value: unknown): value is Message {
  return isObject(value) && typeof value['role'] === 'string' && typeof value['content'] === 'string'
}

function isChoice(value: unknown): value is { message: Message } {
  return isObject(value) && isMessage(value['message'])
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > maxBodyBytes) throw new Error('request body is too large')
    chunks.push(chunk)
  }
  return JSON.parse(Buffer.concat(chunks).toString())
}

const server = createServer(async (request, response) => {
  const send = (status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  try {
    const action = chooseAction(request.url, await readJson(request))
    if (action === undefined) send(404, { error: `unknown path ${request.url}` })
    else send(200, { action })
  } catch (error) {
    send(422, { error: error instanceof Error ? error.message : String(error) })
  }
})
// Longer than the idle time of the gateway, which therefore never reuses a connection that is being closed.
server.keepAliveTimeout = 310_000

const [host = '127.0.0.1', port = '8000'] = (process.env['WEBHOOK_ADDRESS'] ?? '127.0.0.1:8000').split(
  /:(?=\d+$)/,
)
server.listen(Number(port), host, () => process.stdout.write(`guardrail webhook on http://${host}:${port}\n`))
