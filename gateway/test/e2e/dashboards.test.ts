import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'

const folder = fileURLToPath(new URL('../../../examples/grafana', import.meta.url))
const dashboards = globSync('*.json', { cwd: folder }).sort()

type Dashboard = { uid: string; panels: { title: string; targets: { expr: string }[] }[] }

/** Metrics of a gateway: families are listed also without series. */
const exposed = new Set<string>()

beforeAll(async () => {
  const gateway = await startGateway(
    { llm: { models: [{ name: 'echo', provider: 'echo' }] } },
    { lifetime: 'file' },
  )
  for (const [, name = '', type] of (await gateway.metrics()).matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    exposed.add(name)
    if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) exposed.add(`${name}_${part}`)
  }
})

function readDashboard(file: string): Dashboard {
  return JSON.parse(readFileSync(join(folder, file), 'utf8'))
}

describe('Grafana dashboards', () => {
  it.each(dashboards)('%s has metrics of the gateway only', (file) => {
    const names = readDashboard(file).panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => expr.match(/\b(?:tollgate|gen_ai)_\w+(?=[[{]|$)/g) ?? []),
    )
    expect(names.length).toBeGreaterThan(3)
    expect(names.filter((name) => !exposed.has(name))).toEqual([])
  })

  it('have different ids', () => {
    expect(new Set(dashboards.map((file) => readDashboard(file).uid)).size).toBe(dashboards.length)
    expect(dashboards).toHaveLength(4)
  })
})
