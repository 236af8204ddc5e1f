import { afterEach, describe, expect, it, vi } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import type { GatewayError } from '../../../lib/gateway-error.ts'
import type { Child, ChildCommand } from '../../../process/child-process.ts'
import { noCaller } from '../caller.ts'
import { compileAuthorize } from '../credentials.ts'
import { splitCommand } from './process.ts'

/** `end` without a text: the program does not end. */
type Run = { readonly output: string; readonly errors?: string; readonly end?: string }

const origin = 'https://bedrock-runtime.eu-west-1.amazonaws.com'

function fixture(config: string, run: () => Run, environment: Record<string, string> = {}) {
  const commands: ChildCommand[] = []
  let ended = 0
  const child: Child = {
    write() {},
    waiting: () => 0,
    pause() {},
    resume() {},
    async end() {
      ended += 1
    },
  }
  const context = {
    ...fixtureContext(),
    environment: { AWS_CONFIG_FILE: '/config', AWS_SHARED_CREDENTIALS_FILE: '/credentials', ...environment },
    readFileNow(path: string) {
      if (path === '/config') return config
      throw new Error(`${path} does not exist`)
    },
    spawn(command: ChildCommand, listener: Parameters<ReturnType<typeof fixtureContext>['spawn']>[1]) {
      commands.push(command)
      const { output, errors = '', end = 'exit code 0' } = run()
      queueMicrotask(() => {
        listener.stderr(Buffer.from(errors))
        for (const piece of [output.slice(0, 9), output.slice(9)]) listener.stdout(Buffer.from(piece))
        if (end !== '') listener.ended(end)
      })
      return child
    },
  }
  async function keyOf(): Promise<string | undefined> {
    const request = { origin, path: '/', method: 'GET', headers: {} as Record<string, string> }
    await compileAuthorize({ aws: {} }, context)?.apply(request, noCaller)
    return /Credential=(\w+)/.exec(request.headers['authorization'] ?? '')?.[1]
  }
  const failure = () =>
    keyOf().then(
      () => expect.unreachable('keys'),
      (error: unknown) => error as GatewayError,
    )
  return { context, commands, keyOf, failure, ended: () => ended }
}

const keys = (id: string, more: object = {}) =>
  JSON.stringify({ Version: 1, AccessKeyId: id, SecretAccessKey: 'hush', SessionToken: 't', ...more })

const profile = '[default]\ncredential_process = "/opt/my tools/keys" --for \'a b\'\n'

afterEach(() => {
  vi.useRealTimers()
})

describe('credential_process of a profile', () => {
  it('runs without a shell, once for concurrent requests, and again before the keys end', async () => {
    let id = 'ONE'
    const { commands, context, keyOf } = fixture(profile, () => ({
      output: keys(id, { Expiration: '1970-01-01T01:00:05Z' }),
    }))
    expect(await Promise.all([keyOf(), keyOf()])).toEqual(['ONE', 'ONE'])
    expect(commands).toEqual([
      { command: '/opt/my tools/keys', args: ['--for', 'a b'], env: {}, clearEnv: false },
    ])
    id = 'TWO'
    context.clock.advance(3_300_000)
    expect(await keyOf()).toBe('ONE')
    await new Promise(setImmediate)
    expect([await keyOf(), commands.length]).toEqual(['TWO', 2])
  })

  it('runs again after an hour if the keys have no end', async () => {
    const { commands, context, keyOf } = fixture(profile, () => ({
      output: keys('ONE', { SessionToken: null }),
    }))
    for (const ms of [0, 2_000_000, 1_600_000]) {
      context.clock.advance(ms)
      expect(await keyOf()).toBe('ONE')
    }
    expect(commands).toHaveLength(2)
  })

  it('is used after keys and a role of the profile, and before web identity and machine', async () => {
    const { commands, keyOf } = fixture(
      `${profile}aws_access_key_id = FILE\naws_secret_access_key = x\n`,
      () => ({
        output: keys('PROGRAM'),
      }),
    )
    expect([await keyOf(), commands.length]).toEqual(['FILE', 0])
    const environment = { AWS_WEB_IDENTITY_TOKEN_FILE: '/token', AWS_ROLE_ARN: 'arn:r' }
    expect(await fixture(profile, () => ({ output: keys('PROGRAM') }), environment).keyOf()).toBe('PROGRAM')
    const ofVariables = { AWS_ACCESS_KEY_ID: 'ENV', AWS_SECRET_ACCESS_KEY: 'x' }
    expect(await fixture(profile, () => ({ output: '' }), ofVariables).keyOf()).toBe('ENV')
  })

  it.each([
    [{ output: 'hush', errors: 'hush', end: 'exit code 3' }, 'failed: exit code 3'],
    [{ output: '', end: 'command not found' }, 'failed: command not found'],
    [{ output: '{"SecretAccessKey":"hush"' }, 'must be a JSON object with "Version": 1'],
    [{ output: keys('A', { Version: 2 }) }, 'must be a JSON object with "Version": 1'],
    [{ output: keys('A', { SecretAccessKey: 'hush\n' }) }, 'without valid keys'],
    [{ output: keys('A', { Expiration: 'hush' }) }, 'Expiration must be a timestamp'],
    [{ output: keys('A', { Expiration: '1969-01-01T00:00:00Z' }) }, 'the keys have expired'],
  ])('denies requests without its output in the error: %j', async (run, message) => {
    const error = await fixture(profile, () => run).failure()
    expect(error).toMatchObject({ code: 'credential_unavailable' })
    expect(String(error.cause)).toContain('profile "default": credential_process')
    expect(String(error.cause)).toContain(message)
    for (let at: unknown = error; at instanceof Error; at = at.cause) expect(String(at)).not.toContain('hush')
  })

  it('is ended when its output exceeds the limit', async () => {
    const { failure, ended } = fixture(profile, () => ({ output: 'x'.repeat(70_000) }))
    expect(String((await failure()).cause)).toContain('more than 65536 bytes of output')
    expect(ended()).toBe(1)
  })

  it('is ended after the time limit', async () => {
    vi.useFakeTimers()
    const { failure, ended } = fixture(profile, () => ({ output: keys('LATE'), end: '' }))
    const failing = failure()
    await vi.advanceTimersByTimeAsync(30_000)
    expect(String((await failing).cause)).toContain('no end within 30000 ms')
    expect(ended()).toBe(1)
  })

  it('is refused at load without a complete command', () => {
    const { context } = fixture('[default]\ncredential_process = "/opt/keys\n', () => ({ output: '' }))
    expect(() => compileAuthorize({ aws: {} }, context)).toThrow(
      'aws: profile "default": credential_process: a quotation or an escape has no end',
    )
  })
})

describe('arguments of a command', () => {
  it.each([
    ['a  b\tc', ['a', 'b', 'c']],
    [`x'y z'"w" ''`, ['xy zw', '']],
    [String.raw`a\ b "c\"\\\n" 'd\'`, ['a b', String.raw`c"\\n`, String.raw`d\ `.trimEnd()]],
    ['$HOME | x; `y` *', ['$HOME', '|', 'x;', '`y`', '*']],
    ['', []],
  ])('are split as by the AWS CLI: %s', (text, words) => {
    expect(splitCommand(text, 'at')).toEqual(words)
  })

  it.each(['a "b', "a 'b", 'a\\'])('are refused without an end: %s', (text) => {
    expect(() => splitCommand(text, 'at')).toThrow('at: a quotation or an escape has no end')
  })
})
