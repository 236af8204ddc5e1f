const defaultLlmPort = 4000
const defaultMcpPort = 3000

type Section = { port?: number | undefined }

/** The port each section listens on. */
export function portsOf({ llm, mcp }: { llm?: Section | undefined; mcp?: Section | undefined }) {
  return {
    llm: llm && (llm.port ?? defaultLlmPort),
    mcp: mcp && (mcp.port ?? defaultMcpPort),
  }
}
