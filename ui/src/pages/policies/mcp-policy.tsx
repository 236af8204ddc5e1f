import { useParams } from 'wouter'
import { PolicyEditor } from './policy-editor.tsx'

/** One policy of MCP requests. */
export default function McpPolicy() {
  const { name = '' } = useParams()
  return <PolicyEditor key={name} kind="mcp.policy" name={name} path="/mcp/policies" />
}
