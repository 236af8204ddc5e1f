import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { entryEnv } from '../support/gateway.ts'
import { isRunning } from '../support/is-running.ts'
import { member } from '../support/mock-server.ts'

const bench = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))

async function runBench(...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [bench, '--quick', '--json', ...args], {
    env: entryEnv,
  })
  return JSON.parse(stdout)
}

// Figures are produced and none is nonsense; how fast is a matter for a quiet machine.
describe('the benchmark', () => {
  const names = ['completion', 'stream', 'providers', 'mcp-json', 'mcp-sse']
  let result: unknown

  beforeAll(async () => {
    // One run, since its start takes longer than its rounds.
    const only = [...names, 'open-streams', 'mcp-sessions', 'tcp'].join(',')
    result = await runBench('--only', only, '--rounds', '1')
  }, 120_000)

  it.each(names)('measures both subjects with the workload %s', (name) => {
    const workloads = member(result, 'workloads')
    const ofName = (Array.isArray(workloads) ? workloads : []).filter((workload) =>
      String(member(workload, 'name')).startsWith(name),
    )
    expect(ofName).not.toHaveLength(0)
    for (const workload of ofName) {
      for (const subject of ['relay', 'tollgate']) {
        const figures = member(workload, subject)
        for (const figure of [
          'requests',
          'requestsPerSecond',
          'p50Ms',
          'p99Ms',
          'cpuMicrosPerRequest',
          'residentMebibytes',
        ]) {
          const value = member(figures, figure)
          expect([figure, value]).toEqual([figure, expect.toSatisfy((one) => one > 0)])
        }
      }
    }
  })

  it('measures the memory of open streams', () => {
    expect(member(result, 'openStreams', 'streams')).toBe(50)
    expect(member(result, 'openStreams', 'tollgate')).toEqual(expect.any(Number))
  })

  it('measures the memory of idle MCP sessions', () => {
    expect(member(result, 'mcpSessions')).toEqual({
      sessions: 100,
      heapKilobytes: expect.any(Number),
      residentKilobytes: expect.any(Number),
    })
  })

  it('measures TCP routes', () => {
    for (const subject of ['relay', 'tollgate']) {
      for (const figure of ['mebibytesPerSecond', 'cpuSecondsPerGibibyte']) {
        const value = member(result, 'tcp', subject, figure)
        expect([subject, figure, value]).toEqual([subject, figure, expect.toSatisfy((one) => one > 0)])
      }
    }
  })
})

it('the benchmark counts the connections of each worker', async () => {
  const result = await runBench('--workers', '2', '--only', 'workers-spread')
  const figures = member(result, 'workers', 'cases', 0, 'figures')
  expect(figures).toMatchObject([
    { workers: 1, value: 1 },
    { workers: 2, value: expect.toSatisfy((spread) => spread >= 1 && spread <= 2) },
  ])
}, 120_000)

const relay = fileURLToPath(new URL('../../bench/http/relay.ts', import.meta.url))

it('the benchmark measures a peer with its whole process tree', async () => {
  // The shell starts the relay as its child, and uses next to no CPU time and memory itself.
  const command = `sh -c '${process.execPath} ${relay} {{port}} {{upstreamPort}}; true'`
  const result = await runBench('--only', 'http-get', '--rounds', '1', '--peer', `other=${command}`)
  const peer = member(result, 'workloads', 0, 'peers', 0)
  expect(peer).toMatchObject({ peer: 'other', kind: 'measured', without: [] })
  expect(member(peer, 'figures', 'cpuMicrosPerRequest')).toEqual(expect.toSatisfy((micros) => micros > 0))
  expect(member(peer, 'figures', 'residentMebibytes')).toEqual(expect.toSatisfy((size) => size > 30))
})

it('the benchmark names the fix for a peer that is not installed', async () => {
  const run = runBench('--only', 'http-get', '--peer', 'agentgateway=/nowhere/agentgateway')
  await expect(run).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"/nowhere/agentgateway" of peer agentgateway is not found: install'),
  })
})

it('a peer ends with a killed benchmark', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'pid')
  const command = `sh -c 'echo $$ > ${file}; trap "" TERM; ${process.execPath} ${relay} {{port}} {{upstreamPort}}; true'`
  const child = spawn(
    process.execPath,
    [bench, '--only', 'http-get', '--rounds', '1', '--seconds', '60', '--peer', `other=${command}`],
    { stdio: ['ignore', 'ignore', 'pipe'], env: entryEnv },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const chunk of child.stderr) if (String(chunk).includes('plain HTTP')) break
  const peer = Number(readFileSync(file, 'utf8'))
  expect(isRunning(peer)).toBe(true)
  child.kill('SIGKILL')
  await vi.waitFor(() => expect(isRunning(peer)).toBe(false), { timeout: 20_000, interval: 50 })
})
