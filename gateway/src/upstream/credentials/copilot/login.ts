import { join } from 'node:path'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { isCredential } from '../credential.ts'

type Sources = Pick<CompileContext, 'environment' | 'readFileNow'>

const variables = ['GH_COPILOT_TOKEN', 'COPILOT_GITHUB_TOKEN']
const host = 'github.com'

/**
 * The token of a login to GitHub: of the environment, else of an editor with Copilot, else of the GitHub CLI.
 * Files are read for each call, because their owners replace the tokens. Undefined without a login.
 */
export function readLogin({ environment, readFileNow }: Sources): string | undefined {
  for (const name of variables) {
    const token = credentialOf(environment[name])
    if (token !== undefined) return token
  }
  const directory = configDirectory(environment)
  if (directory === undefined) return undefined
  const read = (...names: string[]) => textOf(() => readFileNow(join(directory, ...names)))
  return (
    tokenOfEditor(read('github-copilot', 'hosts.json')) ??
    tokenOfEditor(read('github-copilot', 'apps.json')) ??
    tokenOfGitHubCli(read('gh', 'hosts.yml'))
  )
}

function configDirectory({ XDG_CONFIG_HOME, APPDATA, HOME }: Sources['environment']): string | undefined {
  return XDG_CONFIG_HOME || APPDATA || (HOME ? join(HOME, '.config') : undefined)
}

/** A missing file is no login. */
function textOf(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

/** `{"github.com": {"oauth_token": ...}}`; keys of `apps.json` have the id of the application as suffix. */
function tokenOfEditor(text: string): string | undefined {
  for (const [key, login] of loginsOf(text)) {
    if (key !== host && !key.startsWith(`${host}:`)) continue
    const token = credentialOf(login?.oauth_token)
    if (token !== undefined) return token
  }
  return undefined
}

function loginsOf(text: string): [string, { oauth_token?: unknown } | null][] {
  try {
    return Object.entries(JSON.parse(text) ?? {})
  } catch {
    return []
  }
}

/** The file that `gh auth login --insecure-storage` writes: a block of each host, in YAML. */
function tokenOfGitHubCli(text: string): string | undefined {
  const lines = text.replaceAll('\r', '')
  const block = /^github\.com:\s*\n((?:[ \t]+.*\n?)*)/m.exec(lines)?.[1] ?? ''
  return credentialOf(/^[ \t]+oauth_token:[ \t]*["']?([^"'\s]+)["']?[ \t]*$/m.exec(block)?.[1])
}

function credentialOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const token = value.trim()
  return isCredential(token) ? token : undefined
}
