import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { llmConfig } from '../support/llm-config.ts'
import { startMockServer } from '../support/mock-server.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { keyedEcho, stored } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

/** State and figures for the console. */

async function read(gateway: Gateway, path: string) {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`)
  expect(response.status).toBe(200)
  return await response.json()
}

type State = {
  problems: { code: string; mistakes?: { line?: number }[] }[]
  listeners: { name: string; connections: number }[]
  counts: Record<string, number>
  replicas: { self: boolean }[]
}

function codes({ problems }: State): string[] {
  return problems.map(({ code }) => code)
}

it('reports listeners, counts, and a refused file until it is corrected', async () => {
  const config = llmConfig({})
  const gateway = await startGateway(config)
  const state = (await read(gateway, '/api/state')) as State
  expect(state.listeners).toMatchObject([
    {
      name: 'llm',
      gateway: 'llm',
      port: gateway.port,
      serves: ['llm'],
      url: gateway.url.replace('127.0.0.1', 'localhost'),
    },
  ])
  expect(state.counts['llm.model']).toBeGreaterThan(0)
  expect(state.replicas).toMatchObject([{ self: true }])
  expect(codes(state)).not.toContain('configuration_refused')

  gateway.write({ ...config, llm: { ...config.llm, models: [{ name: 7 }] } })
  const refused = await until('the file is refused', async () => {
    const next = (await read(gateway, '/api/state')) as State
    return codes(next).includes('configuration_refused') && next
  })
  expect(refused.problems[0]?.mistakes?.[0]?.line).toBeGreaterThan(1)
  gateway.write({ ...config, config: { ...config.config, connectionTerminationDeadline: '3s' } })
  await until('the correction is active, with a setting that needs a restart', async () => {
    const next = codes((await read(gateway, '/api/state')) as State)
    return next.includes('restart_needed') && !next.includes('configuration_refused')
  })
})

it('reports an identity provider that is not reachable', async () => {
  const provider = await startMockServer((_, response) => void response.writeHead(500).end())
  const gateway = await startGateway({
    ...llmConfig({}),
    llm: {
      ...llmConfig({}).llm,
      policies: {
        jwtAuth: { issuer: 'https://id.test', audiences: ['a'], jwks: { url: `${provider.url}/keys` } },
      },
    },
  })
  const token = `${btoa('{"alg":"RS256","kid":"a"}')}.${btoa('{"iss":"https://id.test"}')}.x`.replaceAll(
    '=',
    '',
  )
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  await until('the state names the provider', async () =>
    codes((await read(gateway, '/api/state')) as State).includes('identity_provider_unreachable'),
  )
})

type Live = { points: { requests: number; p50Ms?: number }[]; now: { requestsPerSecond: number } }

it.each([1, 2])(
  'samples figures of %d data planes',
  async (workerThreads) => {
    const config = llmConfig({})
    const gateway = await startGateway({ ...config, config: { ...config.config, workerThreads } })
    await until('the first sample is over', async () => {
      await fetch(`${gateway.url}/v1/models`).then((response) => response.text())
      const { points, now } = (await read(gateway, '/api/state/live')) as Live
      return points.some(({ requests, p50Ms }) => requests > 0 && p50Ms !== undefined) && now
    })
  },
  30_000,
)

describe.skipIf(postgresMissing !== undefined)('replicas', () => {
  let postgres: TestPostgres | undefined

  beforeAll(async () => {
    postgres = await startPostgres()
  })

  it('of one database are listed, without those that have ended', async () => {
    const url = await postgres?.createDatabase()
    const config = stored(keyedEcho, url)
    const one = await startGateway(config)
    const other = await startGateway(config)
    await until('both are listed', async () => {
      const { replicas } = (await read(other, '/api/state')) as State
      return replicas.length === 2 && replicas[0]?.self === true && replicas[1]?.self === false
    })
    await one.stop()
    await until('one is listed', async () => {
      const { replicas } = (await read(other, '/api/state')) as State
      return replicas.length === 1
    })
  }, 60_000)
})
