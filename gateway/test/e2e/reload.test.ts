import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { chat, jsonHeaders, llmConfig } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { member } from '../support/mock-server.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

function withModels(...names: string[]): GatewayConfig {
  return llmConfig({}, { models: names.map((name) => ({ name, provider: 'echo' })) })
}

async function listed(gateway: Gateway): Promise<unknown[]> {
  const response = await fetch(`${gateway.url}/v1/models`, { headers: jsonHeaders })
  const data = member(await response.json(), 'data')
  return Array.isArray(data) ? data.map((model) => member(model, 'id')) : []
}

/**
 * A gateway with TLS and models; its certificate is invalid until repaired, which creates a new one each
 * time.
 */
async function withCertificate({ file }: Gateway) {
  const cert = `${file}.cert.pem`
  const key = `${file}.key.pem`
  writeFileSync(cert, 'nothing')
  writeFileSync(key, 'nothing')
  const authority = createAuthority()
  const [port] = await freePorts(1)
  return {
    config: (model: string) => ({ ...withModels(model), gateways: { tls: { port, tls: { cert, key } } } }),
    mend() {
      const issued = authority.issue('localhost')
      writeFileSync(key, issued.key)
      writeFileSync(cert, issued.cert)
    },
  }
}

/** Keeps requests going over kept-alive connections; every answer counts. */
function steadyLoad(gateway: Gateway, connections: number) {
  const statuses = new Map<string, number>()
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  let running = true
  const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'steady' }] })
  const once = () =>
    new Promise<string>((resolve) => {
      const sent = request(
        {
          port: gateway.port,
          host: '127.0.0.1',
          path: '/v1/chat/completions',
          method: 'POST',
          agent,
          headers: jsonHeaders,
        },
        (response) => {
          response.resume()
          response.on('end', () => resolve(String(response.statusCode)))
          response.on('error', (error) => resolve(error.message))
        },
      )
      sent.on('error', (error) => resolve(error.message))
      sent.end(body)
    })
  const drivers = Array.from({ length: connections }, async () => {
    while (running) {
      const outcome = await once()
      statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1)
    }
  })
  const finish = async () => {
    running = false
    await Promise.all(drivers)
    agent.destroy()
    return Object.fromEntries(statuses)
  }
  endAfter('test', async () => {
    await finish()
  })
  return { finish, count: () => [...statuses.values()].reduce((sum, count) => sum + count, 0) }
}

describe('a change of the configuration file', () => {
  it('applies, also if it is written in place', async () => {
    const gateway = await startGateway(withModels('one'))
    expect(await listed(gateway)).toEqual(['one'])
    await gateway.reload(withModels('one', 'two'))
    expect(await listed(gateway)).toEqual(['one', 'two'])
    writeFileSync(gateway.file, readFileSync(gateway.file, 'utf8').replace('"two"', '"three"'))
    await until('the change in place is applied', async () => (await listed(gateway)).includes('three'))
  })

  it('with an error leaves the running state in place, reported until a valid one arrives', async () => {
    const gateway = await startGateway(withModels('one'))
    gateway.write('llm:\n  modles: []\n')
    const status = await until('the bad file is noticed', async () => {
      const now = await gateway.status()
      return now.lastError === undefined ? undefined : now
    })
    expect(status).toMatchObject({ synchronized: false, revision: 1 })
    expect(status.lastError).toContain('modles')
    expect(await listed(gateway)).toEqual(['one'])
    expect(metricValue(await gateway.metrics(), 'tollgate_config_synchronized')).toBe(0)
    await until('the log names the mistake', () => gateway.stdout().includes('modles'))

    gateway.write(withModels('two'))
    await until('the good file is applied', async () => (await gateway.status()).synchronized)
    expect(await listed(gateway)).toEqual(['two'])
    expect(metricValue(await gateway.metrics(), 'tollgate_config_synchronized')).toBe(1)
  })

  it('with errors and back loses no request under load', async () => {
    const gateway = await startGateway(withModels('echo'))
    const load = steadyLoad(gateway, 8)
    for (let turn = 0; turn < 3; turn++) {
      gateway.write(turn % 2 === 0 ? '{{ nonsense' : 'llm: {models: 5}')
      await until('the bad file is noticed', async () => !(await gateway.status()).synchronized)
      gateway.write(withModels('echo', `more-${turn}`))
      await until('the good file is applied', async () => (await gateway.status()).synchronized)
    }
    const served = await load.finish()
    expect(Object.keys(served)).toEqual(['200'])
    expect(served['200']).toBeGreaterThan(100)
  })

  it('leaves the configuration of open streams unchanged', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.pauseMs = 150
    const gateway = await startGateway(llmConfig({ openai }))
    const response = await chat(gateway, { model: 'gpt-test', stream: true })
    await gateway.reload(withModels('other'))
    const { text, broken } = await readStream(response)
    expect(broken).toBe(false)
    expect(text).toContain('[DONE]')
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(404)
  })

  it('of the port moves the listener', async () => {
    const gateway = await startGateway(withModels('one'))
    const other = await startGateway(withModels('one'))
    const { port } = other
    await other.stop()
    const config = withModels('one')
    await gateway.reload({ ...config, llm: { ...config.llm, port } })
    const response = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers: jsonHeaders })
    expect(response.status).toBe(200)
    await until('the old port is closed', () =>
      fetch(`${gateway.url}/v1/models`).then(
        () => false,
        () => true,
      ),
    )
  })

  it('to a port in use is refused, and the previous port stays open', async () => {
    const gateway = await startGateway(withModels('one'))
    const other = await startGateway(withModels('two'))
    const config = withModels('three')
    gateway.write({ ...config, llm: { ...config.llm, port: other.port } })
    const status = await until('the change is refused', async () => {
      const now = await gateway.status()
      return now.lastError === undefined ? undefined : now
    })
    expect(status.lastError).toContain(String(other.port))
    expect(await listed(gateway)).toEqual(['one'])
    expect(await listed(other)).toEqual(['two'])
    await gateway.reload(withModels('four'))
    expect(await listed(gateway)).toEqual(['four'])
  })

  it('of config.* is deferred to a restart without blocking other changes', async () => {
    const gateway = await startGateway(withModels('one'))
    const elsewhere = { bindAddress: '127.0.0.2' }
    await gateway.reload({ ...withModels('two'), config: elsewhere })
    expect(await listed(gateway)).toEqual(['two'])
    await gateway.reload({ ...withModels('three'), config: elsewhere })
    expect(await listed(gateway)).toEqual(['three'])
    expect(gateway.stdout().match(/a change of config\.\* takes effect after a restart/g)).toHaveLength(1)
  })

  it('with a broken certificate applies after a repair of the certificate and another write', async () => {
    const gateway = await startGateway(withModels('one'))
    const { config, mend } = await withCertificate(gateway)
    gateway.write(config('two'))
    await until('the certificate is refused', async () =>
      (await gateway.status()).lastError?.includes('no certificate in PEM format'),
    )
    mend()
    gateway.write(config('three'))
    await until('the file is applied', async () => (await gateway.status()).synchronized)
    expect(await listed(gateway)).toEqual(['three'])
  })

  it('with errors stays reported during a certificate renewal', async () => {
    const gateway = await startGateway(withModels('one'))
    const { config, mend } = await withCertificate(gateway)
    mend()
    await gateway.reload(config('two'))
    gateway.write('llm:\n  modles: []\n')
    await until('the bad file is noticed', async () => !(await gateway.status()).synchronized)
    const { revision } = await gateway.status()
    mend()
    await until('the renewed certificate serves', async () => (await gateway.status()).revision > revision)
    expect(await gateway.status()).toMatchObject({
      synchronized: false,
      lastError: expect.stringContaining('modles'),
    })
  })

  it('of comments only does not apply a configuration', async () => {
    const gateway = await startGateway(withModels('one'))
    appendFileSync(gateway.file, '\n# a remark\n')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(await gateway.status()).toMatchObject({ synchronized: true, revision: 1 })
  })

  it('of config.logging.level applies without a restart', async () => {
    const levels = (gateway: Gateway) => new Set(gateway.stdout().match(/"level":"\w+"/g))
    const withLevel = (level: string, model: string) => ({
      ...withModels(model),
      config: { logging: { level } },
    })
    const gateway = await startGateway(withLevel('warn', 'one'))
    await listed(gateway)
    await gateway.reload(withLevel('info', 'one'))
    expect(gateway.stdout()).not.toMatch(/serving|"request"|"debug"/)
    await listed(gateway)
    await gateway.logged(1)
    expect(levels(gateway)).toEqual(new Set(['"level":"info"']))
    await gateway.reload(withLevel('debug', 'one'))
    appendFileSync(gateway.file, ' ')
    await until('a debug line is written', () => gateway.stdout().includes('"msg":"configuration unchanged"'))
    await gateway.reload(withLevel('error', 'two'))
    const before = gateway.stdout().length
    await listed(gateway)
    gateway.write('llm:\n  modles: []\n')
    await until('an error line is written', () => gateway.stdout().slice(before).includes('"level":"error"'))
    expect(gateway.stdout().slice(before)).not.toMatch(/"level":"(debug|info|warn)"/)
  })
})
