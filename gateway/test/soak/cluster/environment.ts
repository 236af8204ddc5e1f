import { execFile, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { bundleGateway } from '../../../../scripts/bundle.ts'

/** The cluster of a campaign: a control plane and Pods as processes of this machine. */
export type Cluster = {
  readonly state: string
  readonly kubeconfig: string
  /** Runs kubectl and returns its output. */
  kubectl(...args: string[]): Promise<string>
  /** Applies manifests: objects, or the text of YAML documents. */
  apply(...manifests: (object | string)[]): Promise<void>
}

export const root = fileURLToPath(new URL('../../../..', import.meta.url))

const run = promisify(execFile)
const maxOutput = 64 * 1024 * 1024

/** Programs of the control plane, as the tool builds them. */
export function programs(): string {
  const cache = process.env['TOLLGATE_KUBE_CACHE'] ?? join(homedir(), '.cache', 'tollgate-kube')
  return join(cache, 'bin')
}

export function stateFolder(): string {
  return process.env['TOLLGATE_KUBE_STATE'] ?? join(programs(), '..', 'soak')
}

/** The cluster that runs; callable inside its network only. */
export function currentCluster(): Cluster {
  const state = stateFolder()
  const kubeconfig = join(state, 'kubeconfig')
  const env = { ...process.env, KUBECONFIG: kubeconfig }
  const kubectl = async (...args: string[]) => {
    const { stdout } = await run(join(programs(), 'kubectl'), args, { env, maxBuffer: maxOutput })
    return stdout
  }
  let files = 0
  return {
    state,
    kubeconfig,
    kubectl,
    async apply(...manifests) {
      const text = manifests
        .map((manifest) => (typeof manifest === 'string' ? manifest : JSON.stringify(manifest)))
        .join('\n---\n')
      const file = join(state, `soak-${files++}.yaml`)
      writeFileSync(file, text)
      await kubectl('apply', '-f', file)
    },
  }
}

/** Runs a command of the tool in the folder that KUBE_TOOL names; throws if it fails. */
export function tool(...args: string[]): void {
  const folder = process.env['KUBE_TOOL'] ?? ''
  const env = { ...process.env, ...toolEnvironment() }
  const { status } = spawnSync(join(folder, 'kube.sh'), args, { stdio: 'inherit', env })
  if (status !== 0) throw new Error(`kube.sh ${args[0]} failed`)
}

/** Whether the control plane of the state folder runs. */
export function isUp(): boolean {
  const file = join(stateFolder(), 'kube-apiserver.pid')
  if (!existsSync(file)) return false
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return true
  } catch {
    return false
  }
}

/** Folder of the program of Pods and of reports: not the state folder, which ends with the cluster. */
export function programFolder(): string {
  return join(root, '.cache', 'kube', basename(stateFolder()))
}

const node = process.execPath

function toolEnvironment(): Record<string, string> {
  return {
    NODE: node,
    TOLLGATE_KUBE_STATE: stateFolder(),
    TOLLGATE_KUBE_IMAGES: join(stateFolder(), 'images.json'),
  }
}

/** Writes the program of the Pods, apart from that of tests, and the commands that stand for images. */
export async function writeImages(): Promise<void> {
  mkdirSync(stateFolder(), { recursive: true })
  const folder = programFolder()
  await bundleGateway(relative(process.cwd(), join(folder, 'program')))
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  const pod = (file: string) => [node, join(root, 'gateway', 'test', 'soak', 'cluster', file)]
  const images = {
    'registry.k8s.io/gateway-api/echo-basic': [join(programs(), 'echo-basic')],
    'soak-webhook': pod('webhook-pod.ts'),
    'soak-echo': pod('echo-pod.ts'),
    // Any registry and version.
    ...Object.fromEntries(
      ['tollgate', 'ghcr.io/tollgate', 'docker.io/tollgate'].map((name) => [
        name,
        [node, join(folder, 'program', 'tollgate.js')],
      ]),
    ),
  }
  writeFileSync(join(stateFolder(), 'images.json'), JSON.stringify(images, undefined, 2))
}
