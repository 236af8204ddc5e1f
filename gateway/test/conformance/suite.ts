import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** How one scenario of the official suite went. */
export type Outcome = {
  /** False where the revision requires it; true where it runs without counting. */
  unscored: boolean
  /** Checks by result: `SUCCESS`, `FAILURE`, `WARNING` or `SKIPPED`; informational entries are omitted. */
  checks: { id: string; status: string; message: string | undefined }[]
}

const packageFile = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')
const program = join(dirname(packageFile), 'dist', 'index.js')

/** Runs the server scenarios of a revision against a URL; the outcomes by name, in the suite's order. */
export async function runSuite(url: string, revision: string): Promise<Map<string, Outcome>> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-conformance-'))
  try {
    const output = await run(['server', '--url', url, '--requirements', revision, '-o', folder])
    const unscored = output.slice(output.indexOf('Not scored for'))
    const outcomes = new Map<string, Outcome>()
    for (const [, name = ''] of output.matchAll(/^=== Running scenario: (\S+) ===$/gm)) {
      outcomes.set(name, { unscored: unscored.includes(` ${name} (`), checks: readChecks(folder, name) })
    }
    if (outcomes.size === 0) throw new Error(`the suite ran nothing:\n${output}`)
    return outcomes
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The suite's own definition of failure: warnings are not failures. */
export function passes({ checks }: Outcome): boolean {
  return checks.length > 0 && checks.every(({ status }) => status !== 'FAILURE')
}

function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    child.once('error', reject)
    // The exit code reports overall success; the caller evaluates the single checks.
    child.once('close', () => resolve(output))
  })
}

type Check = { id: string; status: string; errorMessage?: string }

function readChecks(folder: string, scenario: string): Outcome['checks'] {
  const found = readdirSync(folder).find(
    (name) => name.replace(/-\d{4}-\d\d-\d\dT.*$/, '') === `server-${scenario}`,
  )
  // A scenario that breaks down writes nothing: it made no checks, so it does not pass.
  const file = found === undefined ? undefined : join(folder, found, 'checks.json')
  if (file === undefined || !existsSync(file)) return []
  const checks: Check[] = JSON.parse(readFileSync(file, 'utf8'))
  return checks
    .filter(({ status }) => status !== 'INFO')
    .map(({ id, status, errorMessage }) => ({ id, status, message: errorMessage }))
}
