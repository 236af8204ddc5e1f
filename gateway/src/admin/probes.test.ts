import { describe, expect, it } from 'vitest'
import { fixtureConnection } from '../../test/fixtures/pipeline.ts'
import { createCancellation } from '../lib/cancellation.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import { renderMetrics } from '../telemetry/exposition/exposition.ts'
import { createMetrics } from '../telemetry/metrics/metrics.ts'
import { createReadiness, createStats } from './probes.ts'

function request(target: string, method = 'GET'): IncomingRequest {
  const cancellation = createCancellation()
  const fixed = {
    version: '1.1',
    headers: {},
    connection: fixtureConnection(),
    upgrade: undefined,
    informational: undefined,
    body: undefined,
    cancellation,
    startedAt: 0,
  }
  return { method, target, ...fixed }
}

describe('createReadiness', () => {
  it('reports ready if nothing is pending', () => {
    let pending = ['listeners', 'database']
    const ready = createReadiness(() => pending)
    expect(ready(request('/healthz/ready'))).toMatchObject({ status: 500 })
    expect(String(ready(request('/healthz/ready')).body)).toBe('not ready, pending: listeners, database\n')
    pending = []
    expect(ready(request('/healthz/ready'))).toMatchObject({ status: 200, body: Buffer.from('ready\n') })
  })

  it('accepts one path and two methods', () => {
    const ready = createReadiness(() => [])
    expect(ready(request('/')).status).toBe(404)
    expect(ready(request('/healthz/ready', 'POST')).status).toBe(405)
    expect(ready(request('/healthz/ready', 'HEAD')).status).toBe(200)
  })
})

describe('createStats', () => {
  const metrics = createMetrics()
  const stats = createStats({ render: (accept) => renderMetrics(metrics, accept) })

  it('serves the format that the client accepts', async () => {
    const accept = ['application/openmetrics-text;version=1.0.0', 'text/plain;q=0.5']
    const reply = await stats({ ...request('/metrics'), headers: { accept } })
    expect(reply.headers['content-type']).toContain('application/openmetrics-text')
    expect(reply.headers['vary']).toBe('accept')
    expect(String(reply.body)).toMatch(/# EOF\n$/)
  })

  it.each(['/metrics', '/stats/prometheus'])('serves Prometheus text on %s', async (path) => {
    const reply = await stats(request(path))
    expect(reply.headers['content-type']).toContain('text/plain')
    expect(String(reply.body)).toContain('# TYPE tollgate_requests_total counter')
  })
})
