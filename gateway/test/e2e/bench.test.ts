import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { member } from '../support/mock-server.ts'

const bench = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))

async function runBench(...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [bench, '--quick', '--json', ...args])
  return JSON.parse(stdout)
}

// Figures are produced and none is nonsense; how fast is a matter for a quiet machine.
it.each(['completion', 'stream', 'mcp-json', 'mcp-sse'])(
  'the benchmark measures both subjects with the workload %s',
  async (name) => {
    const result = await runBench('--only', name, '--rounds', '1')
    for (const subject of ['relay', 'tollgate']) {
      const figures = member(result, 'workloads', 0, subject)
      for (const figure of [
        'requests',
        'requestsPerSecond',
        'p50Ms',
        'p99Ms',
        'cpuMicrosPerRequest',
        'residentMebibytes',
      ]) {
        expect([figure, member(figures, figure)]).toEqual([figure, expect.toSatisfy((value) => value > 0)])
      }
    }
  },
)

it('the benchmark measures the memory of open streams', async () => {
  const result = await runBench('--only', 'open-streams')
  expect(member(result, 'openStreams', 'streams')).toBe(50)
  expect(member(result, 'openStreams', 'tollgate')).toEqual(expect.any(Number))
})

it('the benchmark measures the memory of idle MCP sessions', async () => {
  const result = await runBench('--only', 'mcp-sessions')
  expect(member(result, 'mcpSessions')).toEqual({
    sessions: 100,
    heapKilobytes: expect.any(Number),
    residentKilobytes: expect.any(Number),
  })
})

it('the benchmark measures TCP routes', async () => {
  const result = await runBench('--only', 'tcp', '--rounds', '1')
  for (const subject of ['relay', 'tollgate']) {
    for (const figure of ['mebibytesPerSecond', 'cpuSecondsPerGibibyte']) {
      const value = member(result, 'tcp', subject, figure)
      expect([subject, figure, value]).toEqual([subject, figure, expect.toSatisfy((one) => one > 0)])
    }
  }
})
