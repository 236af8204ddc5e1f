import { createServer, type IncomingMessage } from 'node:http'

// A Pod of the cluster campaign: a guardrail webhook that rejects requests with the word `block`.

const server = createServer((request, response) => {
  textOf(request).then((text) => {
    const rejection = { body: 'request blocked', status_code: 403, reason: 'Inappropriate content detected' }
    const isRejected = request.url === '/request' && text.includes('block')
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ action: isRejected ? rejection : { reason: null } }))
  })
})
server.listen(8_000, '0.0.0.0')
process.on('SIGTERM', () => server.close(() => process.exit(0)))

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
