import { defaultGateway } from './traffic/attachments.ts'

const defaultLlmPort = 4000
const defaultMcpPort = 3000

type Section = { port?: number | undefined; gateways?: unknown }

export type Addressed = {
  gateways?: Readonly<Record<string, unknown>> | undefined
  llm?: Section | undefined
  mcp?: Section | undefined
}

/** The port of a section without gateways; undefined if the section is absent or attached to gateways. */
export function portsOf({ gateways = {}, llm, mcp }: Addressed) {
  const shares = Object.hasOwn(gateways, defaultGateway)
  const portOf = (section: Section | undefined, usual: number) => {
    if (section === undefined || section.gateways !== undefined) return undefined
    return section.port ?? (shares ? undefined : usual)
  }
  return { llm: portOf(llm, defaultLlmPort), mcp: portOf(mcp, defaultMcpPort) }
}
