import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { createSendRequest } from './send-request.ts'

it('names the controller to the API server', async () => {
  const agents: unknown[] = []
  const server = createServer((request, response) => {
    agents.push(request.headers['user-agent'])
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { call, close } = createSendRequest({
    server: new URL(`http://127.0.0.1:${port}`),
    namespace: undefined,
    authority: undefined,
    certificate: undefined,
    serverName: undefined,
    token: undefined,
  })
  try {
    await call({ method: 'GET', path: '/version' })
    expect(agents).toEqual(['tollgate-controller'])
  } finally {
    close()
    server.close()
  }
})
