// SPDX-License-Identifier: Apache-2.0
// A strict object store for tests, on loopback: it refuses what any store would refuse, and fails as it is told.
//
//   node s3d.mjs [--bucket B]... [--key ID:SECRET[:TOKEN]]... [--region R] [--dir D | --discard] [--port P]
//                [--faults FILE] [--log FILE] [--clock-offset S] [--kms] [--dislike HEADER] [--tls-key F --tls-cert F]
//                [--limit S] [--copies DIR]
//
// Prints its address, and ends when its stdin does, or after --limit seconds (600).  Defaults: bucket "bucket", key
// "AKIDEXAMPLE:secret", region "eu-west-1".  --log: one JSON object a line and request.
// --copies: DIR/KEY/SUM for each content that a key ever had.
//
// A fault is { kind, method?, key?, skip?, times?, ... }: it applies to requests of that method whose key contains
// that text, after `skip` of them, `times` times (1; 0: always).  --faults names a JSON list of them; POST /-/faults
// replaces them while it runs, GET /-/faults shows what is left, GET /-/log what was asked, POST /-/keys the keys.
// POST /-/objects stores a JSON list of { key, text | base64, modified } in the first bucket, in memory.
//   status {status, code, retryAfter, message}  refuse before the body is read     silence    never answer
//   reset {after}        close hard after so many bytes of body                    swallow    do it, then close
//   cut {after}          do it, and send so many bytes of the answer               error-in-200 {code}
//   wrong-etag           say another ETag                                          expired    ExpiredToken
//   wrong-date {offset}  Date of the answer is off by so many seconds              delay {ms}
//   big-head {bytes}     a header of that size                                     endless    a body without end
//   redirect {region}    301 that names the region                                 dislike {header}  400 names it
//   page {etag, text}    200 as a web server would say it, and nothing is stored

import * as fs from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { parseArgs } from "node:util";
import { createHash } from "node:crypto";

import { Objects } from "./s3_objects.mjs";
import { Refusal, parseQuery, verify } from "./s3_signature.mjs";

const text = { type: "string" };
const { values: options } = parseArgs({ options: {
	bucket: { ...text, multiple: true, default: ["bucket"] },
	key: { ...text, multiple: true, default: ["AKIDEXAMPLE:secret"] },
	region: { ...text, default: "eu-west-1" },
	dir: text, copies: text, faults: text, log: text, dislike: text, "tls-key": text, "tls-cert": text,
	port: { ...text, default: "0" },
	limit: { ...text, default: "600" },
	"clock-offset": { ...text, default: "0" },
	discard: { type: "boolean", default: false },
	kms: { type: "boolean", default: false },
} });

const store = { region: options.region, keys: parseKeys(options.key) };
const objects = new Objects({ dir: options.dir, discard: options.discard, buckets: options.bucket, copies: options.copies });
const uploads = new Map();
let faults = options.faults ? JSON.parse(fs.readFileSync(options.faults, "utf8")) : [];
const log = [];
let serial = 0;

function parseKeys(list) {
	return new Map(list.map((entry) => {
		const [id, secret, ...token] = entry.split(":");
		return [id, { secret, token: token.join(":") || undefined }];
	}));
}

const now = () => Date.now() / 1000 + Number(options["clock-offset"]);
const escape = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function errorBody(refusal, request) {
	const fields = Object.entries({ Code: refusal.code, Message: refusal.message, ...refusal.fields, RequestId: request.id });
	return `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${fields.map(([k, v]) => `<${k}>${escape(v)}</${k}>`).join("")}</Error>`;
}

/** The first fault for this request, which is used up by one. */
function faultFor(request) {
	for (const fault of faults) {
		if ((fault.method && fault.method !== request.method) || (fault.key && !(request.key ?? "").includes(fault.key)))
			continue;
		if (fault.skip > 0) {
			fault.skip--;
			continue;
		}
		if ((fault.times ?? 1) === 0)
			return fault;
		fault.times = (fault.times ?? 1) - 1;
		if (fault.times === 0)
			faults = faults.filter((other) => other !== fault);
		return fault;
	}
	return {};
}

/** Bucket and key, in virtual-host or in path style. */
function locate(request) {
	const [path, query] = request.url.split(/\?(.*)/s);
	const first = (request.headers.host ?? "").split(":")[0].split(".")[0];
	let parts = path.split("/").slice(1);
	let style = "virtual";
	let bucket = first;
	if (!objects.has(first) || /^\d+$/.test(first)) {
		style = "path";
		bucket = decodeURIComponent(parts[0]);
		parts = parts.slice(1);
	}
	Object.assign(request, { bucket, style, key: decodeURIComponent(parts.join("/")), query: new Map(parseQuery(query)) });
}

function send(request, response, status, headers, body = "") {
	const fault = request.fault;
	request.entry.status = status;
	if (options.log)
		fs.appendFileSync(options.log, `${JSON.stringify(request.entry)}\n`);
	if (fault.kind === "swallow")
		return request.socket.destroy();
	const at = Date.now() + 1000 * (Number(options["clock-offset"]) + (fault.kind === "wrong-date" ? fault.offset : 0));
	const head = { "x-amz-request-id": request.id, Date: new Date(at).toUTCString(), "Content-Length": Buffer.byteLength(body), ...headers };
	if (fault.kind === "wrong-etag" && head.ETag)
		head.ETag = `"${"0".repeat(32)}"`;
	if (fault.kind === "big-head")
		head["x-amz-meta-big"] = "x".repeat(fault.bytes ?? 102400);
	if (fault.kind === "endless")
		return sendEndless(response, status, head);
	if (fault.kind === "cut") {
		const lines = Object.entries(head).map(([k, v]) => `${k}: ${v}\r\n`).join("");
		const bytes = Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines}\r\n`), Buffer.from(body)]);
		return request.socket.end(bytes.subarray(0, fault.after ?? 60));
	}
	response.writeHead(status, head);
	response.end(request.method === "HEAD" ? undefined : body);
	return undefined;
}

function sendEndless(response, status, head) {
	delete head["Content-Length"];
	response.writeHead(status, head);
	const piece = Buffer.alloc(65536, "<a>");
	const more = () => {
		while (!response.destroyed && response.write(piece))
			;
	};
	response.on("drain", more);
	more();
}

function refuse(request, response, refusal) {
	const headers = { "Content-Type": "application/xml", ...refusal.headers };
	if (!request.whole)
		headers.Connection = "close";
	send(request, response, refusal.status, headers, errorBody(refusal, request));
}

/** What can be said before the body. */
function checkHead(request) {
	const disliked = request.fault.kind === "dislike" ? request.fault.header : options.dislike;
	if (request.fault.kind === "status")
		throw Object.assign(new Refusal(request.fault.status, request.fault.code ?? "InternalError", request.fault.message ?? "told to"),
			{ headers: request.fault.retryAfter ? { "Retry-After": request.fault.retryAfter } : {} });
	if (request.fault.kind === "expired")
		throw new Refusal(400, "ExpiredToken", "The provided token has expired.");
	if (request.fault.kind === "redirect")
		throw Object.assign(new Refusal(301, "PermanentRedirect", "The bucket is in another region."),
			{ headers: { "x-amz-bucket-region": request.fault.region ?? store.region } });
	if (!objects.has(request.bucket))
		throw new Refusal(404, "NoSuchBucket", "The specified bucket does not exist");
	if (request.method === "HEAD" && !request.key && !request.headers.authorization)
		throw Object.assign(new Refusal(403, "AccessDenied", "Access Denied"), { headers: { "x-amz-bucket-region": store.region } });
	if (disliked && request.headers[disliked])
		throw new Refusal(400, "InvalidArgument", `Header not supported: ${disliked}`, { Header: disliked });
	request.hash = verify({ method: request.method, rawUrl: request.url, rawHeaders: request.rawHeaders }, { ...store, now: now() });
	if (request.method === "PUT" && request.headers["transfer-encoding"])
		throw new Refusal(501, "NotImplemented", "A header you provided implies functionality that is not implemented", { Header: "Transfer-Encoding" });
	if (request.method === "PUT" && request.headers["content-length"] === undefined)
		throw new Refusal(411, "MissingContentLength", "You must provide the Content-Length HTTP header.");
	if (Number(request.headers["content-length"] ?? 0) > 5 * 2 ** 30)
		throw new Refusal(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
	if (request.key && (request.key.length > 1024 || objects.impossible(request.key)))
		throw new Refusal(400, "KeyTooLongError", "Your key is too long, or no file could have it");
	if (request.method === "PUT" && request.headers["if-none-match"] === "*" && objects.get(request.bucket, request.key))
		throw new Refusal(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
}

function checkBody(request, body) {
	const given = request.headers["x-amz-checksum-sha256"];
	if (/^[0-9a-f]{64}$/.test(request.hash) && body.sum.sha256.toString("hex") !== request.hash)
		throw new Refusal(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.");
	if (given !== undefined && body.sum.sha256.toString("base64") !== given)
		throw new Refusal(400, "BadDigest", "The SHA256 you specified did not match the calculated checksum.");
	if (request.headers["content-md5"] !== undefined && body.sum.md5.toString("base64") !== request.headers["content-md5"])
		throw new Refusal(400, "BadDigest", "The Content-MD5 you specified did not match what we received.");
}

const kept = /^(x-amz-meta-.*|content-type|x-amz-server-side-encryption.*|x-amz-checksum-sha256)$/;
function factsOf(request, etag) {
	const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => kept.test(name)));
	const metaSize = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"))
		.reduce((sum, [name, value]) => sum + name.length - 11 + value.length, 0);
	if (metaSize > 2048)
		throw new Refusal(400, "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size.");
	const kms = options.kms || headers["x-amz-server-side-encryption"] === "aws:kms";
	return { headers, etag: kms ? createHash("sha1").update(`${etag}kms`).digest("hex").slice(0, 32) : etag };
}

function stored(request, response, object) {
	const extra = Object.fromEntries(Object.entries(object.headers).filter(([name]) => /encryption|checksum/.test(name)));
	if (options.kms)
		extra["x-amz-server-side-encryption"] = "aws:kms";
	send(request, response, 200, { ETag: `"${object.etag}"`, ...extra });
}

function putObject(request, response, body) {
	const etag = body.sum.md5.toString("hex");
	if (request.query.has("partNumber")) {
		const upload = uploads.get(request.query.get("uploadId"));
		const number = Number(request.query.get("partNumber"));
		if (!upload || upload.key !== request.key)
			throw new Refusal(404, "NoSuchUpload", "The specified upload does not exist.");
		if (!(number >= 1 && number <= 10000))
			throw new Refusal(400, "InvalidArgument", "Part number must be an integer between 1 and 10000");
		upload.parts.set(number, { body, etag });
		return send(request, response, 200, { ETag: `"${etag}"` });
	}
	return stored(request, response, objects.put(request.bucket, request.key, body, factsOf(request, etag)));
}

function xml(request, response, content, status = 200) {
	send(request, response, status, { "Content-Type": "application/xml" }, `<?xml version="1.0" encoding="UTF-8"?>\n${content}`);
}

function postObject(request, response, body) {
	if (request.query.has("uploads")) {
		const id = `upload-${++serial}`;
		uploads.set(id, { key: request.key, parts: new Map(), facts: factsOf(request, "") });
		return xml(request, response, `<InitiateMultipartUploadResult><Bucket>${escape(request.bucket)}</Bucket><Key>${escape(request.key)}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
	}
	const upload = uploads.get(request.query.get("uploadId"));
	if (!upload || upload.key !== request.key)
		throw new Refusal(404, "NoSuchUpload", "The specified upload does not exist.");
	return completeUpload(request, response, upload, body.bytes().toString());
}

function completeUpload(request, response, upload, list) {
	const whole = objects.newBody(request.bucket);
	const sums = createHash("md5");
	let last = 0;
	let n = 0;
	for (const [, part] of list.matchAll(/<Part>(.*?)<\/Part>/gs)) {
		const number = Number(/<PartNumber>(\d+)<\/PartNumber>/.exec(part)?.[1]);
		const stored = upload.parts.get(number);
		if (!(number > last) || !stored || `"${stored.etag}"` !== /<ETag>(.*?)<\/ETag>/.exec(part)?.[1].replaceAll("&quot;", '"'))
			throw new Refusal(400, number > last ? "InvalidPart" : "InvalidPartOrder", "A part is missing, other than told, or out of order");
		if (number > 1 && upload.parts.get(last).body.size < 5 * 2 ** 20)
			throw new Refusal(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed object size");
		whole.add(stored.body.bytes());
		sums.update(stored.body.sum.md5);
		last = number;
		n++;
	}
	if (n === 0)
		throw new Refusal(400, "MalformedXML", "The XML you provided was not well-formed");
	whole.end();
	for (const part of upload.parts.values())
		part.body.drop();
	uploads.delete(request.query.get("uploadId"));
	const object = objects.put(request.bucket, request.key, whole, { ...upload.facts, etag: `${sums.digest("hex")}-${n}` });
	return xml(request, response, `<CompleteMultipartUploadResult><Key>${escape(request.key)}</Key><ETag>&quot;${object.etag}&quot;</ETag></CompleteMultipartUploadResult>`);
}

function getObject(request, response) {
	const object = objects.get(request.bucket, request.key);
	if (!object)
		throw new Refusal(404, "NoSuchKey", "The specified key does not exist.");
	const headers = { ETag: `"${object.etag}"`, "Last-Modified": new Date(1000 * object.modified).toUTCString(), "Accept-Ranges": "bytes", ...object.headers };
	const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
	if (request.method === "HEAD")
		return send(request, response, 200, { ...headers, "Content-Length": object.size });
	const bytes = objects.read(request.bucket, object);
	if (!range)
		return send(request, response, 200, headers, bytes);
	const first = Number(range[1]);
	const last = Math.min(range[2] === "" ? object.size - 1 : Number(range[2]), object.size - 1);
	if (first >= object.size || last < first)
		throw new Refusal(416, "InvalidRange", "The requested range is not satisfiable");
	return send(request, response, 206, { ...headers, "Content-Range": `bytes ${first}-${last}/${object.size}` }, bytes.subarray(first, last + 1));
}

function listObjects(request, response) {
	const { query } = request;
	if (query.has("location"))
		return xml(request, response, `<LocationConstraint>${store.region}</LocationConstraint>`);
	if (query.get("list-type") !== "2")
		throw new Refusal(501, "NotImplemented", "only LIST version 2");
	const max = Math.min(Number(query.get("max-keys") ?? 1000), 1000);
	const token = query.get("continuation-token");
	if (!(max >= 0) || (token !== undefined && !/^[A-Za-z0-9+/=]+$/.test(token)))
		throw new Refusal(400, "InvalidArgument", "max-keys or continuation-token");
	const after = token === undefined ? query.get("start-after") ?? "" : Buffer.from(token, "base64").toString();
	const show = (key) => query.get("encoding-type") === "url" ? encodeURIComponent(key).replaceAll("%2F", "/").replaceAll("%20", "+") : escape(key);
	const page = objects.list(request.bucket, { prefix: query.get("prefix") ?? "", delimiter: query.get("delimiter"), after, max });
	const contents = page.objects.map((object) => `<Contents><Key>${show(object.key)}</Key><LastModified>${new Date(1000 * object.modified).toISOString()}</LastModified><ETag>&quot;${object.etag}&quot;</ETag><Size>${object.size}</Size><StorageClass>STANDARD</StorageClass></Contents>`);
	const common = page.prefixes.map((prefix) => `<CommonPrefixes><Prefix>${show(prefix)}</Prefix></CommonPrefixes>`);
	return xml(request, response, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${escape(request.bucket)}</Name>${query.has("encoding-type") ? "<EncodingType>url</EncodingType>" : ""}<Prefix>${show(query.get("prefix") ?? "")}</Prefix><KeyCount>${contents.length + common.length}</KeyCount><MaxKeys>${max}</MaxKeys><IsTruncated>${page.more !== undefined}</IsTruncated>${page.more === undefined ? "" : `<NextContinuationToken>${Buffer.from(page.more).toString("base64")}</NextContinuationToken>`}${contents.join("")}${common.join("")}</ListBucketResult>`);
}

function perform(request, response, body) {
	checkBody(request, body);
	if (request.fault.kind === "page") {
		body.drop();
		response.writeHead(200, request.fault.etag ? { ETag: request.fault.etag } : {});
		return response.end(request.fault.text ?? "");
	}
	if (request.fault.kind === "error-in-200")
		return xml(request, response, errorBody(new Refusal(200, request.fault.code ?? "InternalError", "We encountered an internal error."), request).split("\n")[1]);
	if (!request.key)
		return request.method === "GET" ? listObjects(request, response) : send(request, response, 200, { "x-amz-bucket-region": store.region });
	if (request.method === "PUT")
		return putObject(request, response, body);
	if (request.method === "POST")
		return postObject(request, response, body);
	if (request.method === "DELETE") {
		if (request.query.has("uploadId"))
			uploads.delete(request.query.get("uploadId"));
		else
			objects.delete(request.bucket, request.key);
		return send(request, response, 204, {});
	}
	return getObject(request, response);
}

/** Requests of the test itself, unsigned: /-/faults, /-/log, /-/keys, /-/objects. */
function control(request, response, body) {
	const answer = (value) => response.end(`${JSON.stringify(value)}\n`);
	if (request.method === "POST" && request.url === "/-/faults")
		faults = JSON.parse(body);
	if (request.method === "POST" && request.url === "/-/keys")
		store.keys = parseKeys(JSON.parse(body));
	if (request.method === "POST" && request.url === "/-/objects")
		for (const { key, text: plain, base64, modified } of JSON.parse(body))
			objects.plant(options.bucket[0], key, base64 === undefined ? Buffer.from(plain ?? "") : Buffer.from(base64, "base64"), modified);
	return answer(request.url === "/-/log" ? log : faults);
}

function guarded(request, response, work, body) {
	try {
		work();
	} catch (error) {
		body?.drop();
		if (error instanceof Refusal)
			refuse(request, response, error);
		else
			refuse(request, response, new Refusal(500, "InternalError", error.message));
	}
}

function receive(request, response) {
	const body = request.control ? undefined : objects.newBody(request.bucket, request.method);
	const pieces = [];
	let taken = 0;
	request.on("data", (piece) => {
		taken += piece.length;
		if (request.fault?.kind === "reset" && taken > (request.fault.after ?? 0))
			return request.socket.resetAndDestroy();
		return body ? body.add(piece) : pieces.push(piece);
	});
	request.on("close", () => request.complete || body?.drop());
	request.on("end", () => {
		request.whole = true;
		if (request.control)
			return control(request, response, Buffer.concat(pieces).toString());
		body?.end();
		request.entry.bytes = taken;
		if (request.fault.kind === "delay")
			return setTimeout(() => guarded(request, response, () => perform(request, response, body), body), request.fault.ms);
		return guarded(request, response, () => perform(request, response, body), body);
	});
}

function accept(request, response, expects) {
	request.id = `REQ${++serial}`;
	if (request.url.startsWith("/-/")) {
		request.control = true;
		return receive(request, response);
	}
	request.fault = {};
	request.entry = { method: request.method, url: request.url, host: request.headers.host, expects, bytes: 0, md5: request.headers["content-md5"] };
	log.push(request.entry);
	return guarded(request, response, () => {
		locate(request);
		Object.assign(request.entry, { bucket: request.bucket, key: request.key, style: request.style });
		request.fault = faultFor(request);
		if (request.fault.kind === "silence")
			return;
		if (request.fault.kind === "reset" && !request.fault.after) {
			request.socket.resetAndDestroy();
			return;
		}
		checkHead(request);
		if (expects)
			response.writeContinue();
		receive(request, response);
	});
}

const tls = options["tls-key"] && { key: fs.readFileSync(options["tls-key"]), cert: fs.readFileSync(options["tls-cert"]) };
const server = tls ? https.createServer(tls) : http.createServer();
server.on("request", (request, response) => accept(request, response, false));
server.on("checkContinue", (request, response) => accept(request, response, true));
server.on("clientError", (error, socket) => socket.destroy());
server.requestTimeout = 0;
server.listen(Number(options.port), "127.0.0.1", () => {
	process.stdout.write(`${tls ? "https" : "http"}://127.0.0.1:${server.address().port}\n`);
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
setTimeout(() => process.exit(0), 1000 * Number(options.limit)).unref();
