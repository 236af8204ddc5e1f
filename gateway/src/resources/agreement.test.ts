import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import {
  type Answer,
  createMemoryDatabase,
  createSteppingClock,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../test/fixtures/resources.ts'
import { secretPaths } from './secrets/secret-paths.ts'
import { createSqliteStore } from './stores/sqlite/sqlite.ts'

// Any sequence of changes against a model: both stores agree with it on every answer, and file mode on every
// effect.

type Value = Record<string, unknown>
type Step =
  | { op: 'create'; kind: string; values: Value[] }
  | { op: 'replace'; kind: string; which: number; value: Value }
  | { op: 'remove'; kind: string; which: number }

const modelName = fc.constantFrom('a', 'b', 'c/d', 'ü "x"')
const model = fc.record(
  {
    name: modelName,
    provider: fc.constantFrom('echo', 'echo', 'nobody'),
    visibility: fc.constantFrom('public', 'internal'),
  },
  { requiredKeys: ['name', 'provider'] },
)
const key = fc.record(
  {
    key: fc.constantFrom('k1', 'k2', 'k3', '$HOME', ''),
    metadata: fc.record({ name: fc.constantFrom('x', `$\{PATH}`, '# no comment', '1.0') }),
  },
  { requiredKeys: ['key'] },
)
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      op: fc.constant('create' as const),
      kind: fc.constant('llm.model'),
      values: fc.array(model, { maxLength: 2 }),
    }),
    fc.record({
      op: fc.constant('create' as const),
      kind: fc.constant('llm.apiKey'),
      values: fc.array(key, { maxLength: 2 }),
    }),
    fc.record({
      op: fc.constant('replace' as const),
      kind: fc.constant('llm.model'),
      which: fc.nat(3),
      value: model,
    }),
    fc.record({
      op: fc.constant('replace' as const),
      kind: fc.constant('llm.apiKey'),
      which: fc.nat(3),
      value: key,
    }),
    fc.record({
      op: fc.constant('remove' as const),
      kind: fc.constantFrom('llm.model', 'llm.apiKey'),
      which: fc.nat(3),
    }),
  ),
  { maxLength: 12 },
)

const config = `
llm:
  models: []
  policies:
    apiKey:
      keys: []
`

/** Expected state: records in the order in which they were made. */
type Model = { models: Value[]; keys: { id: string; value: Value }[] }

const unknownId = '99999999-9999-4999-8999-999999999999'

/** Ids that are the same for every replica that is asked the same things in the same order. */
function countedUuids(): () => string {
  let count = 0
  return () => `00000000-0000-4000-8000-${String(++count).padStart(12, '0')}`
}

function addressOf({ kind, which }: { kind: string; which: number }, { models, keys }: Model): string {
  const known = kind === 'llm.model' ? models.map(({ name }) => String(name)) : keys.map(({ id }) => id)
  return known[which] ?? (kind === 'llm.model' ? 'nowhere' : unknownId)
}

function ask(replica: Replica, step: Step, model: Model): Promise<Answer> {
  if (step.op === 'create') {
    return replica.call('PUT', `/${step.kind}`, { resources: step.values.map((value) => ({ value })) })
  }
  const path = `/${step.kind}/${encodeURIComponent(addressOf(step, model))}`
  return step.op === 'remove'
    ? replica.call('DELETE', path)
    : replica.call('PUT', path, { value: step.value })
}

/** Status of a step in hybrid mode, and the state after it. */
function expected(step: Step, before: Model, ids: readonly string[]): { status: number; after: Model } {
  const refused = (status: number) => ({ status, after: before })
  const models = [...before.models]
  const keys = [...before.keys]
  const isValid = (value: Value) => value['provider'] === 'echo'
  const position =
    'which' in step && step.which < (step.kind === 'llm.model' ? models : keys).length ? step.which : -1

  if (step.op === 'remove') {
    if (position === -1) return refused(404)
    ;(step.kind === 'llm.model' ? models : keys).splice(position, 1)
    return { status: 200, after: { models, keys } }
  }
  if (step.kind === 'llm.apiKey') {
    const values = step.op === 'create' ? step.values : [step.value]
    if (values.some(({ key }) => key === '')) return refused(400)
    if (step.op === 'replace' && position === -1) return refused(404)
    const others = keys.filter((_, index) => index !== position).map(({ value }) => value['key'])
    const all = [...others, ...values.map(({ key }) => key)]
    if (new Set(all).size < all.length) return refused(409)
    values.forEach((value, index) => {
      const id = step.op === 'create' ? (ids[index] ?? '') : (keys[position]?.id ?? '')
      if (step.op === 'create') keys.push({ id, value })
      else keys[position] = { id, value }
    })
    return { status: 200, after: { models, keys } }
  }
  if (step.op === 'create') {
    const names = step.values.map(({ name }) => name)
    if (new Set(names).size < names.length) return refused(400)
    if (!step.values.every(isValid)) return refused(422)
    for (const value of step.values) {
      const at = models.findIndex(({ name }) => name === value['name'])
      if (at === -1) models.push(value)
      else models[at] = value
    }
    return { status: 200, after: { models, keys } }
  }
  if (position === -1) return refused(404)
  const taken = models.some(({ name }, index) => name === step.value['name'] && index !== position)
  if (taken) return refused(409)
  if (!isValid(step.value)) return refused(422)
  models[position] = step.value
  return { status: 200, after: { models, keys } }
}

function assertRunning(replica: Replica, { models, keys }: Model): void {
  const { llm } = replica.running()
  const running = new Map((llm?.models ?? []).map((item) => [item.name, item]))
  expect(running).toEqual(new Map(models.map((item) => [item['name'], item])))
  const items = keys.map(({ id, value }) => ({ ...value, metadata: { ...Object(value['metadata']), id } }))
  const runningKeys = new Map(
    (llm?.policies?.apiKey?.keys ?? []).map((item) => [item.metadata?.['id'], item]),
  )
  expect(runningKeys).toEqual(new Map(items.map((item) => [item.metadata.id, item])))
}

async function follow(replica: Replica, plan: readonly Step[], isFile: boolean): Promise<Answer[]> {
  let model: Model = { models: [], keys: [] }
  const answers: Answer[] = []
  for (const step of plan) {
    const answer = await ask(replica, step, model)
    answers.push(answer)
    const made = answer.status === 200 && step.op === 'create' && step.kind === 'llm.apiKey'
    const stored = made ? (answer.body as { resources: { id: string }[] }).resources.map(({ id }) => id) : []
    const { status, after } = expected(step, model, stored)
    expect(answer.status, JSON.stringify([step, answer.body])).toBe(isFile && status === 422 ? 500 : status)
    model = after
    assertRunning(replica, model)
  }
  return answers
}

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

describe('any sequence of changes', () => {
  it('has the outcomes of the model in a database in memory', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const clock = createSteppingClock()
        const store = createMemoryDatabase(clock).open()
        await follow(await startHybrid(store, clock, config, { randomUuid: countedUuids() }), plan, false)
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('has the same effects in a file', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        await follow(await startFileMode(config, { randomUuid: countedUuids() }), plan, true)
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('has the same outcomes in SQLite, and is restored at the next start', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-agreement-'))
    folders.push(folder)
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        run += 1
        const open = () =>
          createSqliteStore({ path: join(folder, `${run}.db`), secretPaths, clock: createSteppingClock() })
        const clock = createSteppingClock()
        const replica = await startHybrid(open(), clock, config, { randomUuid: countedUuids() })
        const memory = createMemoryDatabase(clock).open()
        const other = await startHybrid(memory, clock, config, { randomUuid: countedUuids() })
        const answers = await follow(replica, plan, false)
        const others = await follow(other, plan, false)
        expect(answers.map(withoutTimes)).toEqual(others.map(withoutTimes))
        const before = replica.running()
        await replica.resources.close()
        const again = await startHybrid(open(), clock, config)
        expect(again.running()).toEqual(before)
        await again.resources.close()
      }),
      { numRuns: 8 },
    )
  }, 120_000)
})

function withoutTimes({ status, body }: Answer): unknown {
  return JSON.parse(
    JSON.stringify({ status, body }, (key, value: unknown) =>
      /^(?:created|updated)At$/.test(key) ? undefined : value,
    ),
  )
}
