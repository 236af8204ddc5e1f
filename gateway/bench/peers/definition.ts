import type { RequestParts } from '../measure/request.ts'
import type { TemplateValues } from './template.ts'

/** Groups of workloads that a gateway serves with one configuration. */
export type PeerStageName = 'llm' | 'mcp' | 'http'

/** Values of every template. Ports are free ports of the loopback address. */
export type PeerValues = {
  port: number
  adminPort: number
  statsPort: number
  readinessPort: number
  upstreamPort: number
  /** Empty folder of the run, removed after it. */
  folder: string
  /** Path of the first file of the configuration. */
  config: string
}

/** The configuration of a gateway for one group of workloads. */
export type PeerStage = {
  /** Templates in the folder of the definition, by the name of the file in the folder of the run. */
  files: Readonly<Record<string, string>>
  /** Further values of the templates. */
  values?: () => TemplateValues
  /** The form of requests that the product expects, where it differs from Tollgate's. */
  adapt?: (request: RequestParts, values: PeerValues) => RequestParts
  /** Work that Tollgate does in this group and the product does not. */
  without: readonly string[]
}

/** A product, and its configurations with the features of Tollgate's own as far as it has them. */
export type PeerDefinition = {
  name: string
  /** How to install the program, for the error if it is missing. */
  install: string
  /** Arguments after the reader's command, as templates. */
  args: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Responds with a status below 500 once the gateway serves requests. */
  ready: { port: 'port' | 'readinessPort'; path: string }
  stages: Partial<Record<PeerStageName, PeerStage>>
}
