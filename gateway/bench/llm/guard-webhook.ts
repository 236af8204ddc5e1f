import { createServer } from 'node:http'

/** A guardrail webhook that costs as little as possible: everything may pass. */
const answer = Buffer.from('{"action":{"reason":null}}')
const headers = { 'content-type': 'application/json', 'content-length': answer.byteLength }

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.on('end', () => response.writeHead(200, headers).end(answer)).resume()
})
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))
