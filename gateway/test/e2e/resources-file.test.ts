import { chmodSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { keyedEcho, type ResourceApi, resourceApi, statusWith, stored } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

/** Storage in the file: people, tools and the API write to the same one. */

/** A file as people write it, and the gateway that runs it. */
async function startOnText(sections: string, env: Record<string, string> = {}) {
  const gateway = await startGateway(stored(keyedEcho), { env })
  const { config } = JSON.parse(readFileSync(gateway.file, 'utf8'))
  const text = `# The addresses of the test.\nconfig: ${JSON.stringify(config)}\n\n${sections.replace('$PORT', String(gateway.port))}`
  const { revision } = await gateway.status()
  replaceFile(gateway, text)
  await until('it runs the text', async () => (await gateway.status()).revision > revision)
  return { gateway, text, api: resourceApi(gateway) }
}

const commented = `llm:
  port: $PORT   # as before
  # Two models, one of them for tests.
  models:
    - name: from-file
      provider: echo
    - {name: other, provider: echo, defaults: {user: "\${OWNER}"}}   # in one line
  policies:
    apiKey:
      mode: strict

      keys:
        # of the team
        - key: tg-team
          metadata: { name: team }
# the end
`

const textOf = (gateway: Gateway) => readFileSync(gateway.file, 'utf8')

/** As editors do it: another file takes the place of the first. */
function replaceFile(gateway: Gateway, text: string): void {
  writeFileSync(`${gateway.file}.hand`, text)
  renameSync(`${gateway.file}.hand`, gateway.file)
}

const createKey = (api: ResourceApi, key: string) =>
  api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key } }] })

describe('a change through the API', () => {
  it('leaves comments, references and everything else in the file as they are', async () => {
    const { gateway, api, text } = await startOnText(commented, { OWNER: 'ada' })
    const made = await api.create('llm.apiKey', { key: 'tg-made', metadata: { name: 'made' } })
    await api.create('llm.model', { name: 'third', provider: 'echo' })
    const written = textOf(gateway)
    for (const line of text.split('\n')) expect(written).toContain(line)
    expect(await statusWith(gateway, 'tg-made', 'third')).toBe(200)
    await api.remove('llm.model', 'third')
    await api.remove('llm.apiKey', made.id)
    expect(textOf(gateway)).toBe(text)
    expect(await statusWith(gateway, 'tg-team')).toBe(200)
  })

  it.skipIf(process.platform !== 'linux')('of a large file starts no further thread', async () => {
    const keys = Array.from({ length: 1_000 }, (_, index) => ({ key: `tg-${index}`, metadata: { index } }))
    const policies = { apiKey: { mode: 'strict', keys } }
    const gateway = await startGateway(stored({ llm: { ...keyedEcho.llm, policies } }))
    expect(textOf(gateway).length).toBeGreaterThan(32 * 1024)
    const api = resourceApi(gateway)
    const threads = () => readdirSync(`/proc/${gateway.child.pid}/task`)
    await api.create('llm.apiKey', { key: 'tg-first' })
    await api.create('llm.apiKey', { key: 'tg-second' })
    const before = new Set(threads())
    for (const key of ['tg-third', 'tg-fourth', 'tg-fifth']) await api.create('llm.apiKey', { key })
    expect(threads().filter((thread) => !before.has(thread))).toEqual([])
    expect(await statusWith(gateway, 'tg-fifth')).toBe(200)
    expect(await statusWith(gateway, 'tg-999')).toBe(200)
  })

  it('that is one of many at once is not lost', async () => {
    const gateway = await startGateway(stored(keyedEcho))
    const api = resourceApi(gateway)
    const keys = Array.from({ length: 20 }, (_, index) => `tg-many-${index}`)
    const answers = await Promise.all(keys.map((key) => createKey(api, key)))
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200))
    for (const key of keys) expect(await statusWith(gateway, key)).toBe(200)
    const { llm } = JSON.parse(textOf(gateway))
    expect(llm.policies.apiKey.keys).toHaveLength(20)
  })

  it('and one by hand a moment before are both in the file, and both run', async () => {
    const gateway = await startGateway(stored(keyedEcho))
    const api = resourceApi(gateway)
    for (let round = 0; round < 8; round++) {
      expect((await createKey(api, `tg-first-${round}`)).status).toBe(200)
      const edited = JSON.parse(textOf(gateway))
      edited.llm.models.push({ name: `by-hand-${round}`, provider: 'echo' })
      replaceFile(gateway, JSON.stringify(edited, undefined, 1))
      // The file has been changed and not been read again yet.
      expect((await createKey(api, `tg-second-${round}`)).status).toBe(200)
      expect(await statusWith(gateway, `tg-second-${round}`, `by-hand-${round}`)).toBe(200)
    }
    const { llm } = JSON.parse(textOf(gateway))
    expect(llm.models).toHaveLength(9)
    expect(llm.policies.apiKey.keys).toHaveLength(16)
    expect(await gateway.status()).toMatchObject({ synchronized: true })
  })

  it('to a file with mistakes is refused until they are gone', async () => {
    const { gateway, api, text } = await startOnText(commented, { OWNER: 'ada' })
    const broken = text.replace('mode: strict', 'mode: strictly')
    replaceFile(gateway, broken)
    const refused = await createKey(api, 'tg-refused')
    expect(refused).toMatchObject({ status: 500, body: expect.stringContaining('strictly') })
    expect(textOf(gateway)).toBe(broken)
    expect(await statusWith(gateway, 'tg-team')).toBe(200)
    await until('the mistake is known', async () => !(await gateway.status()).synchronized)
    replaceFile(gateway, text)
    expect((await createKey(api, 'tg-accepted')).status).toBe(200)
    expect(await statusWith(gateway, 'tg-accepted')).toBe(200)
    await until('it is in order', async () => (await gateway.status()).synchronized)
  })

  it('to a read-only file is refused with the fix, and changes nothing', async () => {
    const { gateway, api, text } = await startOnText(commented, { OWNER: 'ada' })
    chmodSync(gateway.file, 0o444)
    const refused = await createKey(api, 'tg-refused')
    expect(refused).toMatchObject({ status: 500, body: expect.stringContaining('read-only') })
    expect(textOf(gateway)).toBe(text)
    expect(await statusWith(gateway, 'tg-refused')).toBe(401)
    expect(await statusWith(gateway, 'tg-team')).toBe(200)
    chmodSync(gateway.file, 0o644)
    expect((await createKey(api, 'tg-accepted')).status).toBe(200)
  })

  it('is not reloaded as if somebody else had made it', async () => {
    const gateway = await startGateway(stored(keyedEcho))
    const api = resourceApi(gateway)
    expect((await createKey(api, 'tg-once')).status).toBe(200)
    const { revision } = await gateway.status()
    // Longer than the file is watched for rest.
    await new Promise((resolve) => setTimeout(resolve, 900))
    expect((await gateway.status()).revision).toBe(revision)
    expect(gateway.stdout()).not.toContain('configuration reloaded')
  })

  it('is there after a restart', async () => {
    const gateway = await startGateway(stored(keyedEcho))
    const { id } = await resourceApi(gateway).create('llm.apiKey', { key: 'tg-kept' })
    await gateway.stop()
    const again = await startGateway({}, { again: gateway })
    expect(await statusWith(again, 'tg-kept')).toBe(200)
    await resourceApi(again).remove('llm.apiKey', id)
    expect(await statusWith(again, 'tg-kept')).toBe(401)
  })

  it('writes a text that looks like a reference as text', async () => {
    const gateway = await startGateway(stored(keyedEcho), { env: { SECRET: 'secret-of-the-environment' } })
    const api = resourceApi(gateway)
    const reference = `\${SECRET}`
    const answer = await api.create('llm.apiKey', { key: 'tg-$SECRET', metadata: { name: reference } })
    expect(answer.value).toMatchObject({ key: 'tg-$SECRET', metadata: { name: reference } })
    expect(await statusWith(gateway, 'tg-$SECRET')).toBe(200)
    expect(await statusWith(gateway, 'tg-secret-of-the-environment')).toBe(401)
    await gateway.stop()
    const again = await startGateway({}, { again: gateway, env: { SECRET: 'secret-of-the-environment' } })
    expect(await statusWith(again, 'tg-$SECRET')).toBe(200)
    expect(JSON.stringify(await resourceApi(again).document('effective'))).not.toContain('of-the-environment')
  })
})
