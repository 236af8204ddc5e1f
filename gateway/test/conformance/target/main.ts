// The conformance target as a program: `main.ts stdio`, or `main.ts http`, which prints its URL after it
// listens.
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { serveHttp } from './http.ts'
import { createConformanceServer } from './server.ts'

if (process.argv[2] === 'http') {
  const { url } = await serveHttp()
  process.stdout.write(`${url}\n`)
} else {
  await createConformanceServer().connect(new StdioServerTransport())
}
