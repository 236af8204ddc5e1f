import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { until } from '../../../test/support/wait.ts'
import { createApiClient } from './client.ts'
import { leaseKind } from './requests/other-kinds.ts'

const lease = { metadata: { name: 'a', namespace: 'system' } }

/** A client of a server that records requests. */
async function connect(respond: (message: IncomingMessage, response: ServerResponse) => void, path = '') {
  const urls: string[] = []
  const server = createServer((message, response) => {
    urls.push(message.url ?? '')
    respond(message, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const client = createApiClient({
    server: new URL(`http://127.0.0.1:${port}${path}`),
    authority: undefined,
    serverName: undefined,
    certificate: undefined,
    token: undefined,
    namespace: undefined,
  })
  endAfter('test', () => {
    client.close()
    server.closeAllConnections()
    server.close()
  })
  return { client, urls, place: { kind: leaseKind, namespace: 'system', name: 'a' } }
}

describe('createApiClient', () => {
  it.each(['/k8s/clusters/c-1', '/k8s/clusters/c-1/'])('uses the path %s of an address', async (path) => {
    const { client, urls, place } = await connect((_, response) => response.end(JSON.stringify(lease)), path)
    await client.get(place)
    expect(urls).toEqual(['/k8s/clusters/c-1/apis/coordination.k8s.io/v1/namespaces/system/leases/a'])
  })

  it('ends calls at a signal and sends none afterwards', async () => {
    const { client, urls, place } = await connect(() => {})
    const ending = new AbortController()
    const bounded = client.until(ending.signal)
    const pending = bounded.replace(place, lease).catch((error: unknown) => error)
    await until('the request', () => urls.length === 1)
    ending.abort()
    expect(await pending).toMatchObject({ name: 'ApiError', status: 0 })
    await expect(bounded.replace(place, lease)).rejects.toMatchObject({ name: 'ApiError' })
    expect(urls).toHaveLength(1)
  })
})
