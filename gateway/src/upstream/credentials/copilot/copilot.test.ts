import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { noCaller } from '../caller.ts'
import { compileAuthorize } from '../credentials.ts'
import { readLogin } from './login.ts'

const editor = JSON.stringify({ 'github.com': { user: 'octocat', oauth_token: ' editor-token\n' } })
const app = JSON.stringify({
  'github.com.example.com': { oauth_token: 'other' },
  'github.com:Iv1.abc': { oauth_token: 'app-token' },
})
const cli = `enterprise.example.com:
    oauth_token: other
github.com:
    users:
        octocat:
    oauth_token: "cli-token"
    git_protocol: https
zzz.example.com:
    oauth_token: last
`

/** The login by the environment and the files. */
function login(environment: Record<string, string>, files: Record<string, string> = {}): string | undefined {
  const readFileNow = (path: string) => {
    const text = files[path]
    if (text === undefined) throw new Error(`ENOENT: ${path}`)
    return text
  }
  return readLogin({ environment, readFileNow })
}

const home = { HOME: '/h' }
const all = {
  '/h/.config/github-copilot/hosts.json': editor,
  '/h/.config/github-copilot/apps.json': app,
  '/h/.config/gh/hosts.yml': cli,
}

describe('the login', () => {
  it.each([
    [{ ...home, GH_COPILOT_TOKEN: ' first ', COPILOT_GITHUB_TOKEN: 'second' }, all, 'first'],
    [{ ...home, GH_COPILOT_TOKEN: ' ', COPILOT_GITHUB_TOKEN: 'second' }, all, 'second'],
    [home, all, 'editor-token'],
    [home, { ...all, '/h/.config/github-copilot/hosts.json': '{broken' }, 'app-token'],
    [home, { '/h/.config/gh/hosts.yml': cli }, 'cli-token'],
    [home, { '/h/.config/gh/hosts.yml': cli.replaceAll('\n', '\r\n') }, 'cli-token'],
    [{ ...home, XDG_CONFIG_HOME: '/x' }, { '/x/github-copilot/hosts.json': editor }, 'editor-token'],
    [{ APPDATA: '/w' }, { '/w/github-copilot/hosts.json': editor }, 'editor-token'],
    [home, {}, undefined],
    [{}, all, undefined],
  ])('of %j is found', (environment, files, expected) => {
    expect(login(environment, files)).toBe(expected)
  })

  it.each([
    'null',
    '[]',
    '{"github.com":null}',
    '{"github.com":{"oauth_token":7}}',
    '{"github.com":{"oauth_token":"a b"}}',
  ])('is not read from %s', (text) => {
    expect(login(home, { '/h/.config/github-copilot/hosts.json': text })).toBeUndefined()
  })

  it.each([
    'github.com:\n',
    'github.com:\nother.com:\n  oauth_token: x\n',
    '  github.com:\n    oauth_token: x\n',
  ])('is not read from %j of the GitHub CLI', (text) => {
    expect(login(home, { '/h/.config/gh/hosts.yml': text })).toBeUndefined()
  })
})

describe('backendAuth.copilot', () => {
  function fixture(files: Record<string, string>) {
    const state = { now: 0, files }
    const base = fixtureContext()
    const context = {
      ...base,
      environment: home,
      clock: { ...base.clock, monotonic: () => state.now },
      readFileNow: (path: string) => {
        const text = state.files[path]
        if (text === undefined) throw new Error('ENOENT')
        return text
      },
    }
    const authorize = compileAuthorize({ copilot: {} }, context, { destination: {} })
    const headersOf = async (origin: string) => {
      const request = { headers: {} as Record<string, string>, path: '/', origin }
      await authorize?.apply(request, noCaller)
      return request.headers
    }
    return { state, headersOf }
  }
  const copilot = 'https://api.githubcopilot.com'

  it('adds the token, and a new one after a minute', async () => {
    const { state, headersOf } = fixture(all)
    expect(await headersOf(copilot)).toEqual({ authorization: 'Bearer editor-token' })
    state.files = { '/h/.config/gh/hosts.yml': cli }
    expect(await headersOf(copilot)).toEqual({ authorization: 'Bearer editor-token' })
    state.now = 60_001
    expect(await headersOf(copilot)).toEqual({ authorization: 'Bearer cli-token' })
  })

  it('denies requests without a login', async () => {
    const { headersOf } = fixture({})
    await expect(headersOf(copilot)).rejects.toMatchObject({ code: 'credential_unavailable' })
  })
})
