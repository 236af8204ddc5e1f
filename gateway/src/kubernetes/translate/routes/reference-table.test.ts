import { describe, expect, it } from 'vitest'
import type { References } from '../backends/references.ts'
import type { BackendResolution } from '../plan.ts'
import { createReferenceTable } from './reference-table.ts'

const route = { kind: 'HTTPRoute', metadata: { name: 'r', namespace: 'n' }, spec: {} } as const

describe('createReferenceTable', () => {
  it('resolves a reference once in a pass, for all routes of a namespace', () => {
    const { references, calls } = countingReferences()
    const table = createReferenceTable()
    table.beginPass(references)
    const [one, other] = [table.resolutionsOf(route), table.resolutionsOf(route)]
    table.resolve(one, { name: 's', port: 80 }, 'a')
    table.resolve(other, { name: 's', port: 80 }, 'b')
    expect(calls()).toBe(1)
    table.beginPass(references)
    expect([table.areCurrent(one), table.areCurrent(other)]).toEqual([true, true])
    expect(calls()).toBe(2)
  })

  it('reports other results as changes, and equal ones not', () => {
    const table = createReferenceTable()
    table.beginPass(countingReferences().references)
    const resolutions = table.resolutionsOf(route)
    table.resolve(resolutions, { name: 's', port: 80 }, 'spec')
    table.beginPass(countingReferences().references)
    expect(table.areCurrent(resolutions)).toBe(true)
    const failing: BackendResolution = {
      kind: 'unresolved',
      reason: 'BackendNotFound',
      message: 'Service n/s does not exist',
      placeholder: 'p',
    }
    table.beginPass(countingReferences(failing).references)
    expect(table.areCurrent(resolutions)).toBe(false)
    const next = table.resolutionsOf(route)
    expect(table.resolve(next, { name: 's', port: 80 }, 'spec')).toBe(failing)
    expect(next.unresolved).toEqual([
      { reason: 'BackendNotFound', message: 'spec: Service n/s does not exist' },
    ])
  })

  it('forgets references that no route has', () => {
    const { references, calls } = countingReferences()
    const table = createReferenceTable()
    table.beginPass(references)
    const old = table.resolutionsOf(route)
    for (let index = 0; index < 2_000; index += 1) table.resolve(old, { name: `s${index}` }, '')
    table.beginPass(references)
    table.beginPass(references)
    const before = calls()
    table.resolve(table.resolutionsOf(route), { name: 's0' }, '')
    expect(calls()).toBe(before + 1)
  })
})

function countingReferences(
  result: BackendResolution = { kind: 'resolved', name: 'Service/n/s:80', traffic: 'http' },
) {
  let calls = 0
  const backend = () => {
    calls += 1
    return result.kind === 'resolved' ? { ...result } : result
  }
  // A fake, reduced to the function that the table calls.
  return { references: { backend } as unknown as References, calls: () => calls }
}
