import { createServer } from 'node:http'

// A Pod of the cluster campaign: responds with its name.

const name = process.env['POD_NAME'] ?? 'echo'
const server = createServer((request, response) => {
  request.resume()
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ pod: name, path: request.url }))
})
server.listen(3_000, '0.0.0.0')
// New connections arrive until all proxies have the endpoints without this Pod.
process.on('SIGTERM', () => setTimeout(() => server.close(() => process.exit(0)), 3_000))
