import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Global setup of the tests in a browser: the installed Chromium, or the one that npm installs with the other
// packages.

/** A Chromium with the environment that it needs. */
export type Chromium = { readonly path: string; readonly env: Record<string, string> }

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome.exe']
const applications = ['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome']

export default function setup(): void {
  findChromium()
}

/** Returns the Chromium of `CHROMIUM_PATH`, of the system, or of npm. */
export function findChromium(): Chromium {
  const installed = process.env['CHROMIUM_PATH'] ?? installedChromium()
  if (installed !== undefined) return { path: installed, env: {} }
  if (process.platform === 'linux' && process.arch === 'x64') return unpackedChromium()
  throw new Error('no Chromium found: install chromium or Google Chrome, or set CHROMIUM_PATH')
}

function installedChromium(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const onPath = names.flatMap((name) => folders.map((folder) => join(folder, name)))
  return [...onPath, ...applications].find((path) => existsSync(path))
}

/** Unpacks the Chromium of @sparticuz/chromium, once for each version: 70 MB of Brotli take seconds. */
function unpackedChromium(): Chromium {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const manifest: unknown = JSON.parse(readFileSync(join(entry, '../../package.json'), 'utf8'))
  const version =
    typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : 0
  const folder = join(root, `.cache/chromium-${version}`)
  if (!existsSync(folder)) unpack(folder)
  const path = join(folder, 'chromium')
  const libraries = join(folder, 'al2023/lib')
  return {
    path,
    env: {
      // The package has fonts and libraries for systems without them.
      ...(!existsSync('/etc/fonts/fonts.conf') && { FONTCONFIG_PATH: join(folder, 'fonts') }),
      ...(!starts(path) && { LD_LIBRARY_PATH: libraries }),
    },
  }
}

/** Whether the system has the libraries of the program. */
function starts(path: string): boolean {
  try {
    execFileSync(path, ['--version'], { stdio: 'ignore', timeout: 20_000 })
    return true
  } catch {
    return false
  }
}

/** Unpacks in a further process, because the package uses the folder for temporary files. */
function unpack(folder: string): void {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const temporary = mkdtempSync(`${folder}-`)
  const script = "import('@sparticuz/chromium').then(({ default: chromium }) => chromium.executablePath())"
  execFileSync(process.execPath, ['-e', script], {
    cwd: root,
    // The runtime of the name is one without system libraries, for which they are unpacked, too.
    env: { ...process.env, TMPDIR: temporary, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' },
    timeout: 120_000,
  })
  try {
    renameSync(temporary, folder)
  } catch {
    // Another process was first.
    rmSync(temporary, { recursive: true, force: true })
  }
}
