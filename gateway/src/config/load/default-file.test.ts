import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { sqlitePathOf } from '../../database/url.ts'
import { checkConfig, configSchema } from '../schema.ts'
import { createDefaultFile, defaultFilePath } from './default-file.ts'
import { loadConfigText } from './load.ts'

const base = mkdtempSync(join(tmpdir(), 'tollgate-default-'))
let count = 0

afterAll(() => rmSync(base, { recursive: true }))

function freshFolder(name = `${count++}`): string {
  const folder = join(base, name)
  mkdirSync(folder, { recursive: true })
  return folder
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

function load(file: string) {
  const text = readFileSync(file, 'utf8')
  const result = loadConfigText({ text, file, env: {}, schema: configSchema, checks: [checkConfig] })
  if (result.kind === 'issues') throw new Error(JSON.stringify(result.issues))
  return result.config
}

describe('the path of the default file', () => {
  it.each([
    [{ XDG_CONFIG_HOME: '/settings' }, '/people/ada', '/settings/tollgate/config.yaml'],
    [{}, '/people/ada', '/people/ada/.config/tollgate/config.yaml'],
    [{ XDG_CONFIG_HOME: '' }, '/people/ada', '/people/ada/.config/tollgate/config.yaml'],
    [{ XDG_CONFIG_HOME: 'relative' }, '/people/ada', '/people/ada/.config/tollgate/config.yaml'],
  ])('with %j and the home %s is %s', (env, home, expected) => {
    expect(defaultFilePath(env, home)).toBe(expected)
  })

  it.each(['', 'relative'])('is undefined for the home folder "%s"', (home) => {
    expect(() => defaultFilePath({}, home)).toThrow('no configuration file: name one with -f FILE')
  })
})

describe('the default file', () => {
  it('is created with its folders, for this user only', () => {
    const home = freshFolder()
    const file = defaultFilePath({}, home)
    expect(createDefaultFile(file)).toBe(true)
    expect(modeOf(file)).toBe(0o600)
    expect(modeOf(join(home, '.config/tollgate'))).toBe(0o700)
    expect(readdirSync(join(home, '.config/tollgate'))).toEqual(['config.yaml'])
  })

  it('is valid, listens on loopback, requires keys, and stores additions next to itself', () => {
    const file = join(freshFolder(), 'tollgate/config.yaml')
    createDefaultFile(file)
    const { config, gateways, llm } = load(file)
    expect(config).toMatchObject({
      bindAddress: '127.0.0.1',
      storage: { mode: 'hybrid', allowStdioTargets: true },
    })
    expect(gateways).toEqual({ default: { port: 4000 } })
    expect(llm).toEqual({ models: [], policies: { apiKey: { mode: 'strict', keys: [] } } })
    expect(sqlitePathOf(config?.database?.url ?? '')).toBe(join(file, '../tollgate.db'))
  })

  it.each([
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a folder may be named like a reference
    'a ${HOME} $HOME $$ b',
    'a "quoted" \'one\' # no comment',
    'back\\slash',
    'línea: déjà ☃',
    'new\nline',
  ])('names its database in a folder called %j', (name) => {
    const file = join(freshFolder(name), 'tollgate/config.yaml')
    createDefaultFile(file)
    expect(sqlitePathOf(load(file).config?.database?.url ?? '')).toBe(join(file, '../tollgate.db'))
  })

  it('is not changed if it exists, even if it is empty', () => {
    const file = join(freshFolder(), 'config.yaml')
    writeFileSync(file, '', { mode: 0o644 })
    expect(createDefaultFile(file)).toBe(false)
    expect(readFileSync(file, 'utf8')).toBe('')
    expect(modeOf(file)).toBe(0o644)
  })

  it('does not follow a dangling symbolic link', () => {
    const folder = freshFolder()
    const file = join(folder, 'config.yaml')
    symlinkSync(join(folder, 'elsewhere.yaml'), file)
    expect(createDefaultFile(file)).toBe(false)
    expect(readdirSync(folder)).toEqual(['config.yaml'])
  })

  it('reports the reason of a failure, and leaves nothing behind', () => {
    const folder = freshFolder()
    writeFileSync(join(folder, 'tollgate'), 'a file in the way')
    const file = join(folder, 'tollgate/config.yaml')
    expect(() => createDefaultFile(file)).toThrow(
      `cannot create the configuration file ${file}: a part of its path is not a folder; name one with -f FILE`,
    )
    expect(readdirSync(folder)).toEqual(['tollgate'])
  })

  it('refuses a folder whose name is invalid in a database URL', () => {
    const file = join(base, 'what?', 'tollgate/config.yaml')
    expect(() => createDefaultFile(file)).toThrow('question mark')
    expect(existsSync(join(base, 'what?'))).toBe(false)
  })

  it.skipIf(process.platform !== 'linux')('ends where a file system makes no folders', () => {
    expect(() => createDefaultFile('/proc/tollgate/config.yaml')).toThrow(
      'cannot create the configuration file',
    )
  })
})
