// SPDX-License-Identifier: Apache-2.0
// Signature version 4 as a store checks it: written from the specification, by nobody who wrote the signer.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";

const SKEW_MAX = 900;
const DAYS_7 = 604800;

export class Refusal extends Error {
	constructor(status, code, message, fields = {}) {
		super(message);
		Object.assign(this, { status, code, fields });
	}
}

const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const encode = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		throw new Refusal(400, "InvalidURI", "Couldn't parse the specified URI.");
	}
}

/** [[name, value]] of the raw query, decoded; "+" is a plus. */
export function parseQuery(raw) {
	return raw ? raw.split("&").map((part) => {
		const at = part.indexOf("=");
		return at < 0 ? [decode(part), ""] : [decode(part.slice(0, at)), decode(part.slice(at + 1))];
	}) : [];
}

function canonicalQuery(pairs) {
	return pairs.map(([name, value]) => [encode(name), encode(value)])
		.sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0)
		.map((pair) => pair.join("=")).join("&");
}

/** Map of lower-case name to its value, those of one name joined by commas, in the order sent. */
function headerValues(rawHeaders) {
	const values = new Map();
	for (let i = 0; i < rawHeaders.length; i += 2) {
		const name = rawHeaders[i].toLowerCase();
		const value = rawHeaders[i + 1].trim().replace(/ +/g, " ");
		values.set(name, values.has(name) ? `${values.get(name)},${value}` : value);
	}
	return values;
}

function epochOf(date) {
	const m = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date ?? "");
	if (!m)
		throw new Refusal(403, "AccessDenied", "x-amz-date is missing or is no date");
	return Date.UTC(m[1], m[2] - 1, m[3], m[4], m[5], m[6]) / 1000;
}

function expectedSignature(secret, { date, scope, canonical }) {
	const [day, region, service] = scope.split("/");
	let key = hmac(`AWS4${secret}`, day);
	for (const part of [region, service, "aws4_request"])
		key = hmac(key, part);
	return hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`).toString("hex");
}

/** What the header or the query says of the signature. */
function claims(values, query) {
	const inQuery = new Map(query);
	if (inQuery.has("X-Amz-Signature"))
		return {
			credential: inQuery.get("X-Amz-Credential") ?? "",
			signed: (inQuery.get("X-Amz-SignedHeaders") ?? "").split(";"),
			signature: inQuery.get("X-Amz-Signature"),
			date: inQuery.get("X-Amz-Date"),
			token: inQuery.get("X-Amz-Security-Token"),
			expires: Number(inQuery.get("X-Amz-Expires")),
			algorithm: inQuery.get("X-Amz-Algorithm"),
			hash: "UNSIGNED-PAYLOAD",
			query: query.filter(([name]) => name !== "X-Amz-Signature"),
		};
	const text = values.get("authorization");
	if (!text)
		throw new Refusal(403, "AccessDenied", "Access Denied");
	const m = /^(AWS4-HMAC-SHA256) Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(text);
	if (!m)
		throw new Refusal(400, "AuthorizationHeaderMalformed", "The authorization header is malformed.");
	return {
		algorithm: m[1], credential: m[2], signed: m[3].split(";"), signature: m[4], query,
		date: values.get("x-amz-date"),
		token: values.get("x-amz-security-token"),
		hash: values.get("x-amz-content-sha256"),
	};
}

function checkHeaders(claim, values, presigned) {
	if ([...claim.signed].sort().join() !== claim.signed.join() || claim.signed.some((name) => name !== name.toLowerCase()))
		throw new Refusal(403, "SignatureDoesNotMatch", "signed headers are not in order");
	if (!claim.signed.includes("host"))
		throw new Refusal(403, "AccessDenied", "host is not signed");
	for (const name of values.keys())
		if (name.startsWith("x-amz-") && !claim.signed.includes(name))
			throw new Refusal(403, "AccessDenied", `There were headers present in the request which were not signed: ${name}`);
	for (const name of claim.signed)
		if (!values.has(name))
			throw new Refusal(403, "SignatureDoesNotMatch", `${name} is signed, but was not sent`);
	if (!presigned && !/^([0-9a-f]{64}|UNSIGNED-PAYLOAD)$/.test(claim.hash ?? ""))
		throw new Refusal(400, "InvalidRequest", "x-amz-content-sha256 is missing or is no hash");
	epochOf(claim.date);
}

function checkTime(claim, now) {
	const at = epochOf(claim.date);
	if (claim.expires !== undefined) {
		if (!(claim.expires >= 1 && claim.expires <= DAYS_7))
			throw new Refusal(400, "AuthorizationQueryParametersError", "X-Amz-Expires must be between 1 and 604800");
		if (now > at + claim.expires)
			throw new Refusal(403, "AccessDenied", "Request has expired");
	}
	if (claim.expires === undefined ? Math.abs(now - at) > SKEW_MAX : at - now > SKEW_MAX)
		throw new Refusal(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.");
}

function checkScope(claim, keys, region) {
	const scope = claim.credential.split("/");
	const [day, itsRegion, service, last] = scope.slice(-4);
	const id = scope.slice(0, -4).join("/");
	if (scope.length < 5 || service !== "s3" || last !== "aws4_request" || day !== claim.date.slice(0, 8) ||
		claim.algorithm !== "AWS4-HMAC-SHA256")
		throw new Refusal(400, "AuthorizationHeaderMalformed", "The authorization header is malformed; the credential's scope is wrong.");
	if (itsRegion !== region)
		throw Object.assign(new Refusal(400, "AuthorizationHeaderMalformed",
			`The authorization header is malformed; the region '${itsRegion}' is wrong; expecting '${region}'`, { Region: region }),
		{ headers: { "x-amz-bucket-region": region } });
	if (!keys.has(id))
		throw new Refusal(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.");
	return { secret: keys.get(id).secret, token: keys.get(id).token, scope: scope.slice(-4).join("/") };
}

/**
 * Throws a Refusal, or returns the hash of the body that the request promises.
 * `request`: { method, rawUrl, rawHeaders }; `store`: { keys: Map(id -> { secret, token }), region, now }.
 */
export function verify(request, store) {
	const [path, raw = ""] = request.rawUrl.split(/\?(.*)/s);
	const values = headerValues(request.rawHeaders);
	const claim = claims(values, parseQuery(raw));
	const presigned = claim.expires !== undefined;

	checkHeaders(claim, values, presigned);
	const { secret, token, scope } = checkScope(claim, store.keys, store.region);
	checkTime(claim, store.now);
	const canonical = [
		request.method,
		path.split("/").map((part) => encode(decode(part))).join("/"),
		canonicalQuery(claim.query),
		...claim.signed.map((name) => `${name}:${values.get(name)}`),
		"",
		claim.signed.join(";"),
		claim.hash,
	].join("\n");
	const wanted = expectedSignature(secret, { date: claim.date, scope, canonical });
	if (!/^[0-9a-f]{64}$/.test(claim.signature) || !timingSafeEqual(Buffer.from(wanted), Buffer.from(claim.signature)))
		throw new Refusal(403, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided.");
	if ((token ?? "") !== (claim.token ?? ""))
		throw new Refusal(403, "InvalidToken", "The provided token is malformed or otherwise invalid.");
	return claim.hash;
}
