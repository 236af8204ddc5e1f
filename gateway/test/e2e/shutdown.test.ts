import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { rawConnect } from '../support/raw-http.ts'
import { readStream } from '../support/sse.ts'
import { until, within } from '../support/wait.ts'

async function streamingGateway(config: Record<string, unknown> = {}, pauseMs = 200) {
  const openai = await mockOpenAi()
  openai.behaviour.pauseMs = pauseMs
  const gateway = await startGateway({ ...llmConfig({ openai }), config })
  const response = await chat(gateway, { model: 'gpt-test', stream: true })
  return { gateway, response }
}

describe.each([['SIGTERM'], ['SIGINT']] as const)('after %s', (signal) => {
  it('a stream that has begun is finished, nothing new is accepted, and the exit is clean', async () => {
    const { gateway, response } = await streamingGateway()
    gateway.child.kill(signal)
    await until('new connections are refused', () =>
      fetch(`${gateway.url}/v1/models`).then(
        () => false,
        () => true,
      ),
    )
    const { text, broken } = await readStream(response)
    expect(broken).toBe(false)
    expect(text).toContain('[DONE]')
    expect(await within('the process ends', gateway.exited)).toEqual({ code: 0, signal: null })
    await gateway.stop()
    expect(gateway.requests().at(-1)).toMatchObject({ stream: true, status: 200, totalTokens: 30 })
  })
})

describe('while it shuts down', () => {
  it('a second signal ends it at once', async () => {
    const { gateway, response } = await streamingGateway({ connectionTerminationDeadline: '10m' }, 600_000)
    gateway.child.kill('SIGTERM')
    await until('new connections are refused', () =>
      fetch(`${gateway.url}/v1/models`).then(
        () => false,
        () => true,
      ),
    )
    gateway.child.kill('SIGTERM')
    const exit = await within('the process ends', gateway.exited)
    expect(exit.code).toBe(0)
    await gateway.stop()
    expect((await readStream(response)).text).not.toContain('[DONE]')
  })

  it('the deadline of the configuration ends streams that take longer', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.pauseMs = 60_000
    const gateway = await startGateway({
      ...llmConfig({ openai }),
      config: { connectionTerminationDeadline: '500ms' },
    })
    const response = await chat(gateway, { model: 'gpt-test', stream: true })
    const started = Date.now()
    gateway.child.kill('SIGTERM')
    await within('the process ends', gateway.exited)
    expect(Date.now() - started).toBeGreaterThan(400)
    expect((await readStream(response)).text).not.toContain('[DONE]')
    await gateway.stop()
  })

  it('a deadline of weeks is no deadline of none', async () => {
    const { gateway, response } = await streamingGateway({ connectionTerminationDeadline: '40d' })
    gateway.child.kill('SIGTERM')
    const { text, broken } = await readStream(response)
    expect(broken).toBe(false)
    expect(text).toContain('[DONE]')
    await gateway.stop()
  })

  it('idle connections do not delay it', async () => {
    const gateway = await startGateway({
      ...llmConfig({}),
      config: { connectionTerminationDeadline: '10m' },
    })
    const connection = await rawConnect(gateway.port)
    connection.send(`GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${aliceKey}\r\n\r\n`)
    await connection.receives('"object":"list"')
    const untouched = await rawConnect(gateway.port)
    gateway.child.kill('SIGTERM')
    expect(await within('the process ends', gateway.exited)).toEqual({ code: 0, signal: null })
    await untouched.closed()
    await gateway.stop()
  })

  it('a connection that goes on with requests is closed after its answer', async () => {
    const { gateway, response } = await streamingGateway()
    const connection = await rawConnect(gateway.port)
    const body = JSON.stringify({ model: 'gpt-test', messages: [] })
    const request =
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${aliceKey}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    connection.send(request)
    // The head is in, the body is still to come: a request that has begun is served.
    await new Promise((resolve) => setTimeout(resolve, 100))
    gateway.child.kill('SIGTERM')
    await until('new connections are refused', () =>
      fetch(`${gateway.url}/v1/models`).then(
        () => false,
        () => true,
      ),
    )
    connection.send(body)
    const received = await connection.closed()
    expect(received).toMatch(/^HTTP\/1\.1 200/)
    await readStream(response)
    await gateway.stop()
  })

  it('new connections are accepted for the least time of the configuration', async () => {
    const { gateway, response } = await streamingGateway({ connectionMinTerminationDeadline: '2s' }, 1)
    const started = performance.now()
    gateway.child.kill('SIGTERM')
    await until('readiness fails', async () => {
      const ready = await fetch(`http://127.0.0.1:${gateway.readinessPort}/healthz/ready`).catch(
        () => undefined,
      )
      return ready?.status === 500
    })
    const answer = await chat(gateway, { model: 'gpt-test' })
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
    expect((await readStream(response)).text).toContain('[DONE]')
    expect(await within('the process ends', gateway.exited)).toEqual({ code: 0, signal: null })
    expect(performance.now() - started).toBeGreaterThan(1_900)
    await gateway.stop()
  })

  it('readiness reports it', async () => {
    const { gateway, response } = await streamingGateway()
    gateway.child.kill('SIGTERM')
    await until('readiness fails', async () => {
      const ready = await fetch(`http://127.0.0.1:${gateway.readinessPort}/healthz/ready`).catch(
        () => undefined,
      )
      return ready?.status !== 200
    })
    await readStream(response)
    await gateway.stop()
  })
})
